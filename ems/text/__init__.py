"""Text: cleaning and decontamination, word segmentation, subwords. Pairs travel as TSV files."""
