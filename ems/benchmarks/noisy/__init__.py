"""Noisy FLORES-200: finding the English line with a damaged line of another language."""
