"""Provides the code that tests and benchmarks with a real API server share: a client, a cluster,
and the operator as a process. Uses only Python's standard library."""
