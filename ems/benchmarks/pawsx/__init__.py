"""PAWS-X: are two sentences with nearly the same words paraphrases?"""
