"""BOUQuET: finding the translation of sentences and paragraphs first written in 8 languages."""
