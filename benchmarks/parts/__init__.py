"""The parts of `benchmarks/peers.py`: functions `measure(quick)` that give a dict for results.json, each run in a process of its own."""
