"""The masked language model of BERT, which the Lightweight paper compares (section 4.5)."""

import torch
from torch import Tensor

from ems.objectives.fused import Target


def mlm_target(sentence: Tensor, hidden: Tensor, dtype: torch.dtype = torch.float32) -> Target:
    """Labels: each masked token, for its own state; sentence[M] of each, hidden[M] the tokens.

    Row m is the state of masked token m. The tokens of a sentence have weights that add up to 1: a
    sentence counts as in XTR and SMLM, and the sum over pairs is the same however many processes
    share a step. (BERT takes the mean over all masked tokens of a batch.)
    """
    counts = torch.bincount(sentence)  # masked tokens of each sentence
    row = torch.arange(len(hidden), device=hidden.device)
    return Target(row, hidden, 1.0 / counts[sentence].to(dtype))
