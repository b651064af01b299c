"""The case study of EMS v2 section V-H: two sentences with the same words in a different order."""
