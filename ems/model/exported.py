"""An encoder read back from an exported folder: the weights of a BertModel, or a table of vectors.

Our names and BERT's differ, and its query, key and value are three matrices. An exported encoder
without layers and without positions is a table: the vector of a sentence is the mean of its pieces.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ems.base.sizes import Sizes
from ems.model.encoder import Encoder

TABLE = "table.pieces.weight"

IN_LAYER = {  # ours: BERT's
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "output_norm": "output.LayerNorm",
}
PROJECTIONS = ("query", "key", "value")
KINDS = ("weight", "bias")


def from_bert(weights: dict[str, Tensor], layers: int, positions: bool = True) -> dict[str, Tensor]:
    """Return the weights of our encoder of those of a BertModel. Raises `KeyError` without one."""
    embedding = "embeddings.{}_embeddings.weight".format
    state = {"tokens.weight": weights[embedding("word")]}
    if positions:
        state["positions.weight"] = weights[embedding("position")]
    modules = {"input_norm": ["embeddings.LayerNorm"]}
    for number in range(layers):
        ours, theirs = f"layers.{number}.", f"encoder.layer.{number}."
        modules[f"{ours}attention.input"] = [f"{theirs}attention.self.{p}" for p in PROJECTIONS]
        modules |= {ours + one: [theirs + other] for one, other in IN_LAYER.items()}
    for ours, theirs in modules.items():
        for kind in KINDS:
            state[f"{ours}.{kind}"] = torch.cat([weights[f"{name}.{kind}"] for name in theirs])
    return state


def from_table(weights: Tensor, sizes: Sizes) -> Encoder:
    """Return the encoder of an exported table of one vector for each piece, [pieces, d]."""
    encoder = Encoder(replace(sizes, layers=0, table=weights.shape[1]), len(weights))
    encoder.load_state_dict({TABLE: weights})
    return encoder
