"""Source written from the trace of one round: Python loops for numba, CUDA C for a GPU."""
