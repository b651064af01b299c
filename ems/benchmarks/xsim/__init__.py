"""xsim: how often margin-based search misses the English translation, on FLORES-200."""
