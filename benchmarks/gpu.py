"""The engine "jax" on a GPU, next to the same engine on this machine's processor.

    python benchmarks/gpu.py [--out FILE] [--toy]

plays a few policies, each with several numbers of runs, on both devices in one process. It prints how much faster the GPU is, and writes
the figures as JSON (gpu.json here). It needs `pip install 'jax[cuda12]' bridle-oco` and no other file of this repository. ``--toy`` plays
tiny games, on the processor alone if there is no GPU, and writes nothing.
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path
from statistics import median

import jax
import numpy as np

import bridle

SWEPT = {"sinha2024": "lam", "anytime": "V", "guo2022": "initial"}
"""The policies, and the parameter of which each run has a value of its own."""

SIZES = [*((30, runs, 2_048) for runs in (1, 256, 4_096, 16_384)), (300, 1_024, 2_048)]
"""d, runs and rounds of the games."""


def played(device, name, runs, rounds, dim, repeats=3):
    """The seconds that a call takes on this device once it is compiled, and the cost of each run."""
    problem = bridle.problem("halfspaces", horizon=rounds, dim=dim)
    policy, spent = bridle.policy_for(name, problem, **{SWEPT[name]: list(np.geomspace(0.01, 1.0, runs))}), []
    with jax.default_device(device):
        for _ in range(1 + repeats):
            begun = time.perf_counter()
            trace = bridle.play(policy, problem, engine="jax")
            spent.append(time.perf_counter() - begun)
    return median(spent[1:]), trace.totals.cost


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--toy", action="store_true")
    options = parser.parse_args()
    devices = {device.platform: device for device in (jax.devices("cpu")[0], jax.devices()[0])}
    if "gpu" not in devices:
        print("JAX sees no GPU here: pip install 'jax[cuda12]' (or 'jax[cuda13]') on a machine with an NVIDIA GPU and its driver")
        if not options.toy:
            sys.exit(1)
    figures = {"machine": {name: device.device_kind for name, device in devices.items()}, "jax": jax.__version__, "rows": []}
    for name in SWEPT:
        for dim, runs, rounds in [(3, 2, 20)] if options.toy else SIZES:
            taken = {kind: played(device, name, runs, rounds, dim) for kind, device in devices.items()}
            row = {"policy": name, "d": dim, "runs": runs, "rounds": rounds} | {f"{kind}_s": taken[kind][0] for kind in taken}
            if "gpu" in taken:
                row |= {"ratio": row["cpu_s"] / row["gpu_s"], "apart": float(np.abs(taken["gpu"][1] / taken["cpu"][1] - 1.0).max())}
            figures["rows"].append(row)
            print({key: f"{each:.3g}" if isinstance(each, float) else each for key, each in row.items()}, flush=True)
    if not options.toy:
        options.out.write_text(json.dumps(figures | {"date": date.today().isoformat()}, indent=1) + "\n")
