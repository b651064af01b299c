"""Use of a trained encoder: vectors, scores of pairs, mined pairs, search.

`from ems import Encoder, mine, score` is the interface of Python; `ems.commands.use` that of the
command line. Nothing here needs more than torch, numpy, safetensors, sentencepiece and pydantic.
"""
