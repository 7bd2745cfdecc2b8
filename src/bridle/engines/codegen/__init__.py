"""Source written from the trace of one round as Python loops for numba."""
