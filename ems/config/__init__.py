"""Every setting, typed, with its reason; languages and the records of benchmarks."""
