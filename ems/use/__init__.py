"""Use a trained encoder: vectors, scores of pairs, mined pairs, search.

`from ems import Encoder, mine, score` is the Python interface, `ems.commands.use` the command line.
Nothing here needs more than torch, numpy, safetensors, sentencepiece and pydantic.
"""
