"""Use a trained encoder: vectors, scores of pairs, mined pairs, search.

`from ems import Encoder, mine, score` is the Python interface, `ems.commands.use` the command line.
A static model needs numpy, safetensors and sentencepiece; one with layers PyTorch as well.
"""
