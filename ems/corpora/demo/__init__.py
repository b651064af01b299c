"""The embedded demo corpus: parallel sentences in eight languages, written for EMS, made by rules.

It lets the whole pipeline run without a network: a training and a validation corpus in the OPUS
layout, a benchmark in the layout of Tatoeba v1, a leak between them that decontamination must find,
and the other evaluation sets. The bytes are the same each time.
"""
