"""Benchmarks: the same work by objstore and by other programs, in one run on one machine."""
