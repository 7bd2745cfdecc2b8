"""Source written from the trace of one round as Python loops, and in LLVM's language."""
