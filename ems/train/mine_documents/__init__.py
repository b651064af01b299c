"""Mining: pairs of similar sentences in documents of two languages (Wang et al., CCL 2019, 3.2)."""
