"""The weights and the sizes of an encoder as those of transformers' BertModel.

It is one: token and position embeddings, layer norm, post-LN layers. BERT has a segment embedding
and a pooler besides; both are zero. An encoder without positions has zeros for them. One without
layers and without positions is a table: the layer norm of each piece, averaged.
"""

from typing import Any

import torch
from torch import Tensor

from ems.config.model import EncoderSettings
from ems.model.encode import IN_LAYER, KINDS, PROJECTIONS
from ems.model.encoder import Encoder


def is_table(settings: EncoderSettings) -> bool:
    """Return whether a sentence embedding is the mean of one vector for each of its pieces."""
    if not settings.attends:
        return settings.ngrams == 0
    at_once = settings.layers == 0 and settings.positions == "none"
    return at_once and settings.pooling == "mean" and not settings.table


@torch.no_grad()
def table(encoder: Encoder) -> Tensor:
    """Return the vector of each piece, float32[pieces, d], of an encoder that `is_table`."""
    if encoder.table is not None:
        return encoder.table.pieces.weight.cpu().clone()
    return encoder.input_norm(encoder.tokens.weight).cpu().clone()


def table_weights(encoder: Encoder, dimensions: int) -> dict[str, Tensor]:
    """Return the weights of an encoder without layers by our names, with the first `dimensions` of
    each vector, on the CPU.
    """
    state = {name: value.cpu() for name, value in encoder.state_dict().items()}
    return {
        name: value[:, :dimensions].contiguous() if value.is_floating_point() else value
        for name, value in state.items()
    }


def bert_weights(encoder: Encoder) -> dict[str, Tensor]:
    """Return the weights by BertModel's names, on the CPU."""
    state = {name: value.detach().cpu() for name, value in encoder.state_dict().items()}
    width, places = encoder.settings.width, encoder.settings.max_tokens
    zeros = torch.zeros(places, width)
    weights = {
        "embeddings.word_embeddings.weight": state["tokens.weight"],
        "embeddings.position_embeddings.weight": state.get("positions.weight", zeros),
        "embeddings.token_type_embeddings.weight": torch.zeros(1, width),
        **_both(state, "input_norm", "embeddings.LayerNorm"),
        "pooler.dense.weight": torch.zeros(width, width),
        "pooler.dense.bias": torch.zeros(width),
    }
    for number in range(encoder.settings.layers):
        ours, theirs = f"layers.{number}.", f"encoder.layer.{number}."
        for kind in KINDS:
            parts = state[f"{ours}attention.input.{kind}"].chunk(3)  # each (d, d) or (d,)
            for name, part in zip(PROJECTIONS, parts, strict=True):
                weights[f"{theirs}attention.self.{name}.{kind}"] = part
        for one, other in IN_LAYER.items():
            weights |= _both(state, ours + one, theirs + other)
    return {name: value.contiguous() for name, value in weights.items()}


def _both(state: dict[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    return {f"{theirs}.{kind}": state[f"{ours}.{kind}"] for kind in KINDS}


def bert_config(settings: EncoderSettings, pieces: int) -> dict[str, Any]:
    """Return config.json of a BertModel of these sizes with so many pieces."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": pieces,
        "hidden_size": settings.width,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "intermediate_size": settings.feed_forward,
        "hidden_act": settings.activation,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.attention_dropout,
        "max_position_embeddings": settings.max_tokens,
        "type_vocab_size": 1,
        "layer_norm_eps": settings.norm_eps,
        "pad_token_id": 0,
        "torch_dtype": "float32",
    }
