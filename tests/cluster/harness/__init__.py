"""Shared by the tests and benchmarks on a real API server: a client, a cluster, and an operator as
a process. Uses only the standard library."""
