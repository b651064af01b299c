"""The embedded demo corpus: parallel sentences in eight languages, written for EMS, made by rules.

With it the whole pipeline runs without a network. The bytes are the same each time.
"""
