"""What the tests and benchmarks on a real API server share: a client, a cluster, an operator as a process.
The standard library only."""
