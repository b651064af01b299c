"""Systems of character n-grams: alone (`char-ngram`), or beside a trained encoder (`fused`)."""
