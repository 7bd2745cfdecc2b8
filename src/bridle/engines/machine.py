"""Machine code for this processor, made by LLVM in memory, and called without a compiler's front door."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import llvmlite
import numpy as np
from llvmlite import binding as llvm

from bridle.engines.codegen.llvm import C_LIBRARY
from bridle.ops import Array

LOCK = threading.RLock()
"""One thread at a time compiles and loads."""

_loaded: list[object] = []
"""What holds the machine code that is in use."""


class ObjectCode(NamedTuple):
    """Machine code as a file would hold it, and how many numbers of scratch memory it wants."""

    content: bytes
    scratch: int


@cache
def _machine() -> Any:
    """The processor at hand. Its wider instructions are used, and change no result: nothing is reordered or contracted."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if sys.platform == "win32":  # elsewhere the process has the C library's functions in sight
        library = ctypes.CDLL("ucrtbase")
        for name in C_LIBRARY:
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="pic", jit=True)


def processor() -> str:
    """What machine code depends on, besides what it was made from."""
    _machine()
    return f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {llvmlite.__version__}"


def compiled(text: str) -> bytes:
    """The machine code of a module in LLVM's language."""
    with LOCK:
        machine = _machine()
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = llvm.get_default_triple(), str(machine.target_data)
        module.verify()
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        tuning.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
        content: bytes = machine.emit_object(module)
        return content


def loaded(content: bytes) -> int:
    """The address of the function `run` of machine code."""
    with LOCK:
        _machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine(jit=True))
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        engine.finalize_object()
        _loaded.append(engine)
        address: int = engine.get_function_address("run")
        return address


def rounds_of(code: ObjectCode) -> Callable[..., None]:
    """The function that plays rounds: ``run(rounds, lanes, marks, inputs, outputs)``. Python's other threads go on meanwhile."""
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)(loaded(code.content))

    def run(rounds: int, lanes: int, marks: Array, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        scratch = np.empty(code.scratch + 8)
        aligned = (scratch.ctypes.data + 63) // 64 * 64
        tables = [(ctypes.c_void_p * len(each))(*(array.ctypes.data for array in each)) for each in (inputs, outputs)]
        call(rounds, lanes, marks.ctypes.data, aligned, *tables)

    return run


def step_of(code: ObjectCode) -> Callable[[Array], Callable[[], int]]:
    """The function that takes a step in a memory, once it knows which: calling it then costs next to nothing."""
    call = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(loaded(code.content))
    return lambda memory: partial(call, memory.ctypes.data)
