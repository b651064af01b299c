"""A small checkpoint and vocabulary like the authors', and its weights for made/references.py.

Names and shapes are the ones of https://github.com/Mao-KU/EMS; no function of ems makes them.
"""

import io
import itertools

import numpy as np
import sentencepiece
import torch

WIDTH, LAYERS, HEADS, INNER, MOST = 12, 2, 3, 20, 9
LANGUAGES = ["en", "de", "zh", "ja"]
BERT = "module.model.bert."
PARTS = ("query", "key", "value")
NO_BIAS = ("encoder.tokens", "encoder.positions", "heads.generative.languages")
NO_BIAS += ("heads.generative.output",)


def write_vocabulary(path, symbols=("<MASK>", *(f"<2{code}>" for code in LANGUAGES)), size=44):
    """A SentencePiece model with their layout: 0 <pad>, 1 <unk>, 2 <MASK>, the languages."""
    model = io.BytesIO()
    parts = ["kalo", "mine", "ne", "ru"], ["so", "ti", "va"], ["lo", "mi", "ka"]
    lines = map(" ".join, itertools.product(*parts))
    options = {"model_type": "bpe", "vocab_size": size, "control_symbols": list(symbols)}
    options |= {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    options |= {"minloglevel": 2, "hard_vocab_limit": False}
    train = sentencepiece.SentencePieceTrainer.train
    train(sentence_iterator=lines, model_writer=model, **options)
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def modules(pieces):
    """(their name, the one in made/references.py, the shape of its weight) of each module."""
    yield f"{BERT}embedding.word_embedding.embedding", "encoder.tokens", (pieces, WIDTH)
    positions = f"{BERT}embedding.position_embedding.position_embeddings"
    yield positions, "encoder.positions", (MOST + 1, WIDTH)
    yield f"{BERT}embedding.layer_norm", "encoder.input_norm", (WIDTH,)
    for at in range(LAYERS):
        theirs, ours = f"{BERT}encoder.layer.{at}.", f"encoder.layers.{at}."
        for part in PARTS:
            name = f"attention.self_attention.{part}"
            yield f"{theirs}{name}", f"{ours}attention.{part}", (WIDTH, WIDTH)
        yield f"{theirs}attention.output.dense", f"{ours}attention.output", (WIDTH, WIDTH)
        yield f"{theirs}attention.output.LayerNorm", f"{ours}attention_norm", (WIDTH,)
        yield f"{theirs}intermediate.dense", f"{ours}inner", (INNER, WIDTH)
        yield f"{theirs}output.dense", f"{ours}outer", (WIDTH, INNER)
        yield f"{theirs}output.LayerNorm", f"{ours}output_norm", (WIDTH,)
    theirs, ours, width = "module.model.", "heads.generative.", WIDTH + 8
    yield f"{theirs}la_tag_linear.embedding", f"{ours}languages", (len(LANGUAGES), 8)
    yield f"{theirs}la_tag_linear.layer_norm", f"{ours}language_norm", (8,)
    yield f"{theirs}transform.dense", f"{ours}mix", (width, width)
    yield f"{theirs}transform.LayerNorm", f"{ours}norm", (width,)
    yield f"{theirs}decoder.decoder", f"{ours}output", (pieces, width)
    yield "module.alignproj.0", "heads.contrastive.inner", (WIDTH, WIDTH)
    yield "module.alignproj.3", "heads.contrastive.outer", (5, WIDTH)


def make_state(pieces):
    """A state_dict with their keys and shapes, random."""
    draw, state = torch.Generator().manual_seed(5), {}
    for name, ours, shape in modules(pieces):
        state[f"{name}.weight"] = torch.randn(shape, generator=draw) * 0.4 + (len(shape) == 1)
        if ours not in NO_BIAS:
            state[f"{name}.bias"] = torch.randn(shape[0], generator=draw) * 0.4
    return state


def checkpoint(state):
    """A checkpoint like their main.py's; the losses may be numbers of NumPy."""
    return {
        "state_dict": state,
        "best_loss": np.float64(4.25),
        "valid_loss": np.float32(4.5),
        "step": 733176,
        "epoch": 3,
        "model_name": "maki49",
        "optimizer": {"state": {0: {"step": 1, "exp_avg": torch.zeros(3)}}, "param_groups": []},
    }


def weights_for_reference(state):
    """Their weights in float64, by the names of made/references.py."""
    weights = {"heads": HEADS, "eps": 1e-12}
    for theirs, ours, _ in modules(0):
        for kind in ("weight", "bias"):
            if f"{theirs}.{kind}" in state:
                weights[f"{ours}.{kind}"] = state[f"{theirs}.{kind}"].double()
    weights["encoder.positions.weight"] = weights["encoder.positions.weight"][1:]  # 0 is padding
    for at in range(LAYERS):
        name = f"encoder.layers.{at}.attention"
        for kind in ("weight", "bias"):
            parts = [weights[f"{name}.{part}.{kind}"] for part in PARTS]
            weights[f"{name}.input.{kind}"] = torch.cat(parts)
    return weights
