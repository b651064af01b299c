"""An encoder read back from an exported folder: the weights of a BertModel, or a table of vectors.

Our names and BERT's differ, and its query, key and value are three matrices. An exported encoder
without layers and without positions is a table: the vector of a sentence is the mean of its pieces.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from ems.sizes import Sizes

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


class Table(nn.Module):
    """A vector for each piece, table[pieces, d]; a sentence is the mean of its pieces."""

    def __init__(self, table: Tensor, sizes: Sizes) -> None:
        super().__init__()
        self.settings = replace(sizes, width=table.shape[1])
        self.tokens = nn.Embedding.from_pretrained(table)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the means [N, d] of packed tokens[T] with lengths[N]."""
        sentence = torch.repeat_interleave(lengths)  # (T,)
        sums = self.tokens.weight.new_zeros(len(lengths), self.tokens.embedding_dim)
        return sums.index_add(0, sentence, self.tokens(tokens)) / lengths[:, None]
