"""Pairs of your own text: finding the translation among all of them, in both directions."""
