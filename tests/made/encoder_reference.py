"""The encoder by its equations, a sentence at a time: loops over layers, heads and tokens.

Imports nothing from ems; no padding, no packing. `change` names one term to get wrong, which the
tests must notice (CHANGES).
"""

import math

import torch

CHANGES = [
    "no position",
    "no input norm",
    "no scale",
    "one head",
    "key and value swapped",
    "no softmax",
    "looks back only",
    "not itself",
    "no residual of attention",
    "no residual of the inner layer",
    "norm before the residual",
    "relu",
    "one layer",
    "same layer twice",
]


def layer_norm(x, gain, bias, eps=1e-5):
    centre = x.sum() / len(x)
    spread = ((x - centre) ** 2).sum() / len(x)
    return (x - centre) / torch.sqrt(spread + eps) * gain + bias


def norm(w, name, x):
    return layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"])


def linear(w, name, x):
    return w[f"{name}.weight"] @ x + w[f"{name}.bias"]


def attention(w, name, states, heads, change=None):
    """softmax(q k / sqrt(d / heads)) v of each token over all tokens of its sentence."""
    width = len(states[0])
    heads = 1 if change == "one head" else heads
    size = width // heads
    scale = 1.0 if change == "no scale" else 1 / math.sqrt(size)
    projected = [linear(w, f"{name}.input", state).split(width) for state in states]
    if change == "key and value swapped":
        projected = [(query, value, key) for query, key, value in projected]
    mixed = []
    for at, (query, _, _) in enumerate(projected):
        parts = []
        for first in range(0, width, size):
            part = slice(first, first + size)
            shares = []
            for other, (_, key, _) in enumerate(projected):
                score = (query[part] * key[part]).sum() * scale
                unseen = change == "looks back only" and other > at
                unseen = unseen or (change == "not itself" and other == at and len(states) > 1)
                shares.append(score if change == "no softmax" else torch.exp(score) * (not unseen))
            total = 1.0 if change == "no softmax" else sum(shares)
            values = [value[part] for _, _, value in projected]
            parts.append(sum(p / total * v for p, v in zip(shares, values, strict=True)))
        mixed.append(linear(w, f"{name}.output", torch.cat(parts)))
    return mixed


def feed_forward(w, name, state, change=None, activation="silu"):
    """W_outer swish(W_inner x); gelu is x times the share of a normal distribution below it."""
    inner = linear(w, f"{name}.inner", state)
    if activation == "gelu":
        inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    else:
        inner = inner * (inner > 0) if change == "relu" else inner / (1 + torch.exp(-inner))
    return linear(w, f"{name}.outer", inner)


def layer(w, name, states, heads, change=None, activation="silu"):
    """A post-LN Transformer layer."""
    mixed = attention(w, f"{name}.attention", states, heads, change)
    after = []
    for state, branch in zip(states, mixed, strict=True):
        residual = state * (change != "no residual of attention")
        state = norm(w, f"{name}.attention_norm", residual + branch)
        residual = state * (change != "no residual of the inner layer")
        branch = feed_forward(w, name, state, change, activation)
        if change == "norm before the residual":
            after.append(residual + norm(w, f"{name}.output_norm", branch))
        else:
            after.append(norm(w, f"{name}.output_norm", residual + branch))
    return after


def encoder_states(w, tokens, heads=1, change=None, activation="silu"):
    """The state of each token; `w` has the weights of an encoder with any number of layers."""
    states = []
    for at, token in enumerate(tokens):
        state = w["encoder.tokens.weight"][token]
        if change != "no position":
            state = state + w["encoder.positions.weight"][at]
        states.append(state if change == "no input norm" else norm(w, "encoder.input_norm", state))
    count = len({name.split(".")[2] for name in w if name.startswith("encoder.layers.")})
    for at in range(1 if change == "one layer" else count):
        number = 0 if change == "same layer twice" else at
        states = layer(w, f"encoder.layers.{number}", states, heads, change, activation)
    return states
