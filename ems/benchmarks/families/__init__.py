"""The protocols that several benchmarks share; the record of each benchmark names its family."""
