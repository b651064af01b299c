"""A small checkpoint and vocabulary like the authors', and their encoder and losses in plain loops.

The reference is their architecture written out, float64, one sentence at a time
(reference/original-code.md sections 5 to 9); nothing of it is from ems.
"""

import io
import itertools
import math
from functools import partial

import numpy as np
import sentencepiece
import torch

WIDTH, LAYERS, HEADS, INNER, MOST = 12, 2, 3, 20, 9
LANGUAGES = ["en", "de", "zh", "ja"]
BERT = "module.model.bert."


def write_vocabulary(path, symbols=("<MASK>", *(f"<2{code}>" for code in LANGUAGES)), size=44):
    """A SentencePiece model with their layout: 0 <pad>, 1 <unk>, 2 <MASK>, the languages."""
    model = io.BytesIO()
    parts = ["kalo", "mine", "ne", "ru"], ["so", "ti", "va"], ["lo", "mi", "ka"]
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=map(" ".join, itertools.product(*parts)),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        **ids,
        control_symbols=list(symbols),
        minloglevel=2,
        hard_vocab_limit=False,
    )
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def make_state(pieces):
    """A state_dict with their keys and shapes, random."""
    draw = torch.Generator().manual_seed(5)

    def random(*shape):
        return torch.randn(*shape, generator=draw) * 0.4

    def linear(name, out, into):
        return {f"{name}.weight": random(out, into), f"{name}.bias": random(out)}

    def norm(name, size):
        return {f"{name}.weight": 1 + random(size), f"{name}.bias": random(size)}

    state = {
        f"{BERT}embedding.word_embedding.embedding.weight": random(pieces, WIDTH),
        f"{BERT}embedding.position_embedding.position_embeddings.weight": random(MOST + 1, WIDTH),
        **norm(f"{BERT}embedding.layer_norm", WIDTH),
    }
    for number in range(LAYERS):
        layer = f"{BERT}encoder.layer.{number}."
        for name in ("query", "key", "value"):
            state |= linear(f"{layer}attention.self_attention.{name}", WIDTH, WIDTH)
        state |= linear(f"{layer}attention.output.dense", WIDTH, WIDTH)
        state |= norm(f"{layer}attention.output.LayerNorm", WIDTH)
        state |= linear(f"{layer}intermediate.dense", INNER, WIDTH)
        state |= linear(f"{layer}output.dense", WIDTH, INNER)
        state |= norm(f"{layer}output.LayerNorm", WIDTH)
    state |= {"module.model.la_tag_linear.embedding.weight": random(len(LANGUAGES), 8)}
    state |= norm("module.model.la_tag_linear.layer_norm", 8)
    state |= linear("module.model.transform.dense", WIDTH + 8, WIDTH + 8)
    state |= norm("module.model.transform.LayerNorm", WIDTH + 8)
    state |= {"module.model.decoder.decoder.weight": random(pieces, WIDTH + 8)}
    state |= linear("module.alignproj.0", WIDTH, WIDTH) | linear("module.alignproj.3", 5, WIDTH)
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


def projection(w, name, value):
    return value @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def normed(w, name, value):
    normal = value - value.mean(-1, keepdims=True)
    normal = normal / np.sqrt(value.var(-1, keepdims=True) + 1e-12)
    return normal * w[f"{name}.weight"] + w[f"{name}.bias"]


def swish(value):
    return value / (1 + np.exp(-value))


def reference(state, ids):
    """Their encoder on one sentence of token ids: float64[WIDTH]."""
    w = {key.removeprefix(BERT): value.double().numpy() for key, value in state.items()}

    linear, norm = partial(projection, w), partial(normed, w)
    words = w["embedding.word_embedding.embedding.weight"][ids[:MOST]]
    places = w["embedding.position_embedding.position_embeddings.weight"]
    states = norm("embedding.layer_norm", words + places[1 : len(words) + 1])
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}."
        names = (f"{layer}attention.self_attention.{name}" for name in ("query", "key", "value"))
        query, key, value = (linear(name, states) for name in names)
        mixed = np.zeros_like(states)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            shares = np.exp(query[:, part] @ key[:, part].T / math.sqrt(size))
            mixed[:, part] = shares / shares.sum(1, keepdims=True) @ value[:, part]
        out = f"{layer}attention.output."
        states = norm(f"{out}LayerNorm", linear(f"{out}dense", mixed) + states)
        inner = swish(linear(f"{layer}intermediate.dense", states))
        out = f"{layer}output."
        states = norm(f"{out}LayerNorm", linear(f"{out}dense", inner) + states)
    return states.mean(axis=0)


def losses(state, sides, change=None):
    """Their XTR and contrastive loss of sides[2][B] (language, tokens as the model sees them)."""
    w = {key.removeprefix("module."): value.double().numpy() for key, value in state.items()}
    vectors = [[reference(state, ids) for _, ids in side] for side in sides]
    xtr = 0.0
    for own, other in ((0, 1), (1, 0)) if change != "one direction" else ((0, 1),):
        for vector, of, (to, ids) in zip(vectors[own], sides[own], sides[other], strict=True):
            language = of[0] if change == "own language" else to
            shares = {word: 1 / len(ids) for word in ids}
            if change == "counted":
                shares = {word: list(ids).count(word) / len(ids) for word in ids}
            if change == "added up":
                shares = {word: share / sum(shares.values()) for word, share in shares.items()}
            log_q = predicted(w, language, vector, change)
            xtr += sum(p * (math.log(p) - log_q[word]) for word, p in shares.items())
    inner = (np.maximum(0, projection(w, "alignproj.0", np.array(side))) for side in vectors)
    first, second = (projection(w, "alignproj.3", side) for side in inner)
    if change != "dot":
        first, second = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (first, second))
    scores = first @ second.T
    crossed = [np.log(np.exp(s / 0.1).sum(1)) - np.diag(s) / 0.1 for s in (scores, scores.T)]
    return xtr / len(sides[0]), sum(part.mean() for part in crossed)


def predicted(w, language, vector, change):
    embedding = w["model.la_tag_linear.embedding.weight"][language]
    inputs = np.concatenate([normed(w, "model.la_tag_linear.layer_norm", embedding), vector])
    mixed = swish(projection(w, "model.transform.dense", inputs))
    if change != "no norm":
        mixed = normed(w, "model.transform.LayerNorm", mixed)
    logits = w["model.decoder.decoder.weight"] @ mixed
    return logits - np.log(np.exp(logits).sum())
