"""FLORES-200: finding the translation among 1,012 sentences, between any two languages."""
