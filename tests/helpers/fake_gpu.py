"""A GPU for tests: CUDA C compiled by the machine's C++ compiler, and CuPy's few functions that the engine calls.

The threads of a block are fibres of one thread. Each runs on until it must wait for others, which is the worst case for a kernel that
forgets to make them wait.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from bridle.engines.codegen.cuda_math import MACHINE

COMPILER = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")

SHIM = r"""
#include <cmath>
#include <cstring>
#include <ucontext.h>
#include <vector>
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __restrict__
static inline int min(int a, int b) { return a < b ? a : b; }
struct Place { int x; };
static Place threadIdx, blockIdx;
static double* shared_memory;
static int threads, lanes_;
static ucontext_t scheduler;
static std::vector<ucontext_t> fibres;
static std::vector<long long> exchanged;
static std::vector<int> waits, finished;
static void give_way() { const int me = threadIdx.x; swapcontext(&fibres[me], &scheduler); threadIdx.x = me; }
static void meet(int first, int count) {
    const int mine = ++waits[threadIdx.x];
    for (bool all = false; !all;) {
        all = true;
        for (int i = first; i < first + count; ++i) all = all && (waits[i] >= mine || finished[i]);
        if (!all) give_way();
    }
}
static int group() { return threadIdx.x / lanes_ * lanes_; }
static void __syncwarp(unsigned) { meet(group(), lanes_); }
static void __syncthreads() { meet(0, threads); }
template <class T> static T _swap(unsigned, T v, int m) {
    T other;
    std::memcpy(&exchanged[threadIdx.x], &v, sizeof v);
    meet(group(), lanes_);
    std::memcpy(&other, &exchanged[threadIdx.x ^ m], sizeof v);
    meet(group(), lanes_);
    return other;
}
static long long __double_as_longlong(double x) { long long made; std::memcpy(&made, &x, 8); return made; }
template <int LANES> static double _from(unsigned mask, double v, int lane) {
    double other;
    std::memcpy(&exchanged[threadIdx.x], &v, sizeof v);
    meet(group(), lanes_);
    std::memcpy(&other, &exchanged[threadIdx.x / LANES * LANES + lane % LANES], sizeof v);
    meet(group(), lanes_);
    return other;
}
static int _high(double x) { return (int)(__double_as_longlong(x) >> 32); }
static int _low(double x) { return (int)__double_as_longlong(x); }
static double _word(int high, int low) {
    const long long made = ((long long)high << 32) | (unsigned)low;
    double x; std::memcpy(&x, &made, 8);
    return x;
}
// The machine gives some 20 bits, and takes what is below the smallest normal number for zero.
static double _flushed(double x) { return std::fabs(x) < 2.2250738585072014e-308 ? std::copysign(0.0, x) : x; }
static double _inverse_guess(double x) { return _flushed(_word(_high(1.0 / _flushed(x)), 0)); }
static double _root_guess(double x) { return _word(_high(1.0 / std::sqrt(_flushed(x))), 0); }
static double _apart(double x) { return x; }
static bool _any(bool flag) { return flag; }
static double _either(bool flag, double a, double b) { return flag ? a : b; }
static void _fetch(double* to, const double* from) { *to = *from; }
static void _fetched() {}
"""

LAUNCH = r"""
static void** given;
static void fibre() { CALL; finished[threadIdx.x] = 1; }
extern "C" void launch(int blocks, int block, int lanes, long long bytes, void** pointers) {
    given = pointers; threads = block; lanes_ = lanes;
    std::vector<double> memory(bytes / 8 + 1);
    std::vector<std::vector<char>> stacks(block, std::vector<char>(262144));
    shared_memory = memory.data();
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        for (double& word : memory) word = NAN;
        fibres.assign(block, ucontext_t()); exchanged.assign(block, 0); waits.assign(block, 0); finished.assign(block, 0);
        for (int i = 0; i < block; ++i) {
            getcontext(&fibres[i]);
            fibres[i].uc_stack.ss_sp = stacks[i].data(); fibres[i].uc_stack.ss_size = stacks[i].size(); fibres[i].uc_link = &scheduler;
            makecontext(&fibres[i], fibre, 0);
        }
        for (int left = block; left > 0;) {
            left = 0;
            for (int i = 0; i < block; ++i) {
                if (!finished[i]) { threadIdx.x = i; swapcontext(&scheduler, &fibres[i]); left += !finished[i]; }
            }
        }
    }
}
"""


def compiled(text: str, name: Path) -> ctypes.CDLL:
    """The library that this machine's compiler makes of C++."""
    name.with_suffix(".cpp").write_text(text)
    command = [COMPILER, "-O0", "-w", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", f"{name}.cpp", "-o", f"{name}.so"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(f"{name}.so")


class RawModule:
    """What CuPy makes of a source, on this machine's own processor."""

    folder: Path

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        parameters = re.search(r"play\((.*)\) \{", code)[1].split(", ")
        types = [parameter.rsplit(" ", 1)[0].replace(" __restrict__", "") for parameter in parameters]
        values = [f"*({type_}*)given[{n}]" if type_ == "const int" else f"({type_})given[{n}]" for n, type_ in enumerate(types)]
        kernel = code.removeprefix(MACHINE).replace("extern __shared__ double memory[];", "double* const memory = shared_memory;")
        text = SHIM + kernel + LAUNCH.replace("CALL", f"play({', '.join(values)})")
        self.lanes = int(re.search(r"lane = threadIdx.x % (\d+)", code)[1])
        self.library = compiled(text, self.folder / hashlib.sha256(text.encode()).hexdigest()[:16])

    def get_function(self, name: str):
        assert name == "play"

        def kernel(grid, block, arguments, shared_mem):
            held = [np.array(each) if np.ndim(each) == 0 else each for each in arguments]
            pointers = (ctypes.c_void_p * len(held))(*(each.ctypes.data for each in held))
            self.library.launch(grid[0], block[0], self.lanes, ctypes.c_longlong(shared_mem), pointers)

        return SimpleKernel(kernel)


class SimpleKernel:
    max_dynamic_shared_size_bytes = 0

    def __init__(self, call) -> None:
        self.call = call

    def __call__(self, grid, block, arguments, shared_mem) -> None:
        assert shared_mem <= max(self.max_dynamic_shared_size_bytes, 48 * 1024)
        self.call(grid, block, arguments, shared_mem)


class Array(np.ndarray):
    def set(self, array, stream) -> None:
        self[...] = array


class Stream:
    def __init__(self, non_blocking: bool = False) -> None:
        pass

    def record(self) -> None:
        pass

    def wait_event(self, event) -> None:
        pass


def cupy(folder: Path, cores: int = 2) -> SimpleNamespace:
    """A stand-in for the package, that keeps what it compiles in `folder`."""
    module = type("Module", (RawModule,), {"folder": folder})
    attributes = {"MultiProcessorCount": cores, "MaxSharedMemoryPerBlockOptin": 200 * 1024}
    device = SimpleNamespace(attributes=attributes, synchronize=lambda: None)
    runtime = SimpleNamespace(getDeviceProperties=lambda number: {"name": b"processor in place of a GPU"})
    return SimpleNamespace(
        asarray=lambda array, dtype=None: np.array(array, dtype=dtype, order="C"),
        asnumpy=np.array,
        empty=lambda shape: np.full(shape, np.nan).view(Array),
        RawModule=module,
        cuda=SimpleNamespace(Device=lambda: device, Stream=Stream, get_current_stream=Stream, runtime=runtime),
    )
