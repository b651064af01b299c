"""Encoder, objectives and n-grams by their equations: plain loops, gradients by autograd.

Imports nothing from ems. `change` names one term to get wrong, which the tests must notice.
"""

import math
from functools import partial

import torch

# --- character n-grams


PLACES = 1 << 20


def murmur(data, seed):
    from mmh3 import hash as hashed  # imported late: perf/gpu.py runs without mmh3

    return hashed(data, seed, signed=False)


def number(value, seed):
    return murmur(value.to_bytes(4, "little"), seed)


def grams(words, settings):
    """The n-grams of words between their marks, ("gram", text), and the words, ("whole", text)."""
    features = set()
    for word in words:
        marked = f"<{word}>"
        features.add(("whole", marked))
        for n in range(settings.least, settings.most + 1):
            for at in range(len(marked) - n + 1):
                features.add(("gram", marked[at : at + n]))
    return features


def place(gram):
    kind, text = gram
    if kind == "whole":
        return murmur(text.encode(), 0) % PLACES
    polynomial = 0
    for letter in text:
        polynomial = (polynomial * 2654435761 + ord(letter)) % 2**32
    return number(polynomial, len(text)) % PLACES


def plain_vector(places, weights, buckets):
    vector = [0.0] * buckets
    for at in places:
        hashed = number(at, 0)
        sign = -1 if hashed >= 2**31 else 1
        vector[hashed % 2**31 % buckets] += sign * weights[at]
    return vector


# --- the encoder: no padding, no packing


ENCODER_CHANGES = [
    *("no position", "no input norm", "no scale", "one head", "key and value swapped"),
    *("no softmax", "looks back only", "not itself", "no residual of attention"),
    *("no residual of the inner layer", "norm before the residual", "relu", "one layer"),
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


# --- every objective, in float64


MASK = 2
MAXIMUM = ["by absolute value", "maximum first"]
CHANGES = {
    "xtr": ["no entropy", "one direction", "own language", "own tokens", "no bias"],
    "xtr distinct": ["counted", "add up to 1", "no mask"],
    "ugt": ["no entropy", "no half", "half for both", "overwritten", "mask in labels"],
    "ugt distinct": ["both halves", "counted", "no mask in labels"],
    "smlm": ["own side only", "other side only", "language of the translation"],
    "mlm": ["sum over tokens", "first side only", "pooled", "language of the translation"],
    "contrastive": ["no temperature", "one direction", "inner product", "no mlp"],
    "dot": ["cosine", "no temperature", "one direction", "no mlp"],
    "margin": ["no margin", "margin for all", "after temperature", "in one direction"],
    "both sides": ["other side only", "self"],
    "duplicates": ["none masked", "only the same sentence", "positive masked"],
    "groups": ["one group", "neighbours overlap"],
    "groups of both sides": ["one group", "other side only", "no margin"],
    "align in groups": ["one group", "cosine"],
    "align": ["cosine", "temperature", "one direction"],
    "similarity": ["pi", "no diagonal", "cosine", "no logarithm"],
    "similarity sum": ["mean", "no diagonal", "pi"],
    "matryoshka": ["sum", "all dimensions", "last dimensions", "one size"],
    "context": ["the other loss", "labels swapped", "no bias", "sum", "true text only", *MAXIMUM],
    "context printed": ["the other loss", "labels swapped", "no bias", "sum", "true text only"],
    "coherence": ["no score", "no bias", "absolute", "sum", *MAXIMUM],
    "xtr mean-max": MAXIMUM,
    "contrastive mean-max": MAXIMUM,
}


def states_of(w, sentence):
    """The states of the tokens of a sentence, a list."""
    return encoder_states(w, sentence["input"], w.get("heads", 1), w.get("change"))


def embedding(w, sentence, change=None):
    """Eq. 1 of EMS v2, or with mean-max [mean(H), max(H)] (CCL 2019, section 3)."""
    states = states_of(w, sentence)
    mean = sum(states) / len(states)
    if w.get("pooling") != "mean-max":
        return mean
    size = (lambda value: abs(value)) if change == "by absolute value" else (lambda value: value)
    columns = [[state[at] for state in states] for at in range(len(mean))]
    largest = torch.stack([max(column, key=size) for column in columns])
    return torch.cat([largest, mean] if change == "maximum first" else [mean, largest])


def log_shares(w, vector, language, change=None):
    """log softmax of Eq. 2-5 over the pieces, with every optional part that has weights."""
    head = {k.removeprefix("heads.generative."): v for k, v in w.items() if "generative" in k}
    if "languages.weight" in head:
        own = head["languages.weight"][language]
        if "language_norm.weight" in head:
            own = layer_norm(own, head["language_norm.weight"], head["language_norm.bias"])
        vector = torch.cat([own, vector])
    mixed = head["mix.weight"] @ vector + head["mix.bias"]
    state = mixed / (1 + torch.exp(-mixed))
    if "norm.weight" in head:
        state = layer_norm(state, head["norm.weight"], head["norm.bias"])
    output = head.get("output.weight", w["encoder.tokens.weight"])
    logits = [(piece * state).sum() for piece in output]
    if "bias" in head and change != "no bias":
        logits = [logit + shift for logit, shift in zip(logits, head["bias"], strict=True)]
    log_sum = torch.log(sum(torch.exp(logit) for logit in logits))
    return [logit - log_sum for logit in logits]


def kl(shares, log_q, change=None):
    """sum_w p(w) (log p(w) - log q(w))."""
    total = 0.0
    for word, p in shares.items():
        own = 0.0 if change == "no entropy" else math.log(p)
        total = total + p * (own - log_q[word])
    return total


def shares_of(tokens, distinct=False, share=1.0):
    """N_w / |S| (Eq. 7), or 1 / |S| for each distinct token (the authors' code), times `share`."""
    return {w: share * (1 if distinct else tokens.count(w)) / len(tokens) for w in set(tokens)}


def sides(pairs):
    """(own, other) of each pair in both directions."""
    return [(a, b) for a, b in pairs] + [(b, a) for a, b in pairs]


def xtr(w, pairs, change=None, distinct=False, **_):
    """EMS v2 Eq. 6-7. If distinct, labels of a masked input hold <mask>, as the authors' code."""
    total = 0.0
    directed = sides(pairs)[: len(pairs)] if change == "one direction" else sides(pairs)
    for own, other in directed:
        language = own["language"] if change == "own language" else other["language"]
        words = other["input"] if distinct and change != "no mask" else other["tokens"]
        words = own["tokens"] if change == "own tokens" else words
        shares = shares_of(words, distinct and change != "counted")
        if change == "add up to 1":
            shares = {word: p / sum(shares.values()) for word, p in shares.items()}
        log_q = log_shares(w, embedding(w, own, change), language, change)
        total = total + kl(shares, log_q, change)
    return total


def ugt(w, pairs, change=None, distinct=False, **_):
    """Lightweight Eq. 3 if the translation has the mask, Eq. 4 if the sentence has it.

    `distinct` is the authors' code: 0.5 is written first, then overwritten by 1 / |S'| or half.
    """
    total = 0.0
    for own, other in sides(pairs):
        masked = distinct != (change in ("mask in labels", "no mask in labels"))
        hidden = list(own["hidden"].values())
        if change == "half for both" and not hidden:
            hidden = list(other["hidden"].values())
        hidden = [] if change == "no half" else hidden
        words = other["input"] if masked else other["tokens"]
        shares = shares_of(words, distinct and change != "counted", 0.5 if hidden else 1.0)
        for word in hidden:
            before = shares.get(word, 0.0)
            if distinct and change != "both halves":
                shares[word] = before or 0.5
            else:
                shares[word] = 0.5 if change == "overwritten" else before + 0.5
        log_q = log_shares(w, embedding(w, own), other["language"])
        total = total + kl(shares, log_q, change)
    return total


def smlm(w, pairs, change=None, **_):
    """Lightweight Eq. 1 for the choice of l that the mask makes."""
    total = 0.0
    for own, other in sides(pairs):
        for word in own["hidden"].values():
            side = other if change == "language of the translation" else own
            by_own = log_shares(w, embedding(w, own), side["language"])[word]
            by_other = log_shares(w, embedding(w, other), side["language"])[word]
            if change != "other side only":
                total = total - by_own
            if change != "own side only":
                total = total - by_other
    return total


def mlm(w, pairs, change=None, **_):
    """Each masked token from its own state; the mean over a sentence."""
    total = 0.0
    directed = sides(pairs)[: len(pairs)] if change == "first side only" else sides(pairs)
    for own, other in directed:
        side = other if change == "language of the translation" else own
        states, loss = states_of(w, own), 0.0
        for at, word in own["hidden"].items():
            state = embedding(w, own) if change == "pooled" else states[at]
            loss = loss - log_shares(w, state, side["language"])[word]
        total = total + (loss if change == "sum over tokens" else loss / len(own["hidden"]))
    return total


def projected(w, vector):
    """h of EMS v2 Eq. 10-11, or the embedding itself where there is no MLP."""
    if "heads.contrastive.inner.weight" not in w:
        return vector
    inner = w["heads.contrastive.inner.weight"] @ vector + w["heads.contrastive.inner.bias"]
    inner = torch.stack([value if value > 0 else value * 0 for value in inner])
    return w["heads.contrastive.outer.weight"] @ inner + w["heads.contrastive.outer.bias"]


def cosine(first, second):
    product = (first * second).sum()
    return product / torch.sqrt((first * first).sum() * (second * second).sum())


def eq8(vectors, texts, settings, change=None):
    """Eq. 8 with all options: vectors[j] and texts[j] are both sides of pair j."""
    temperature = 1.0 if change == "no temperature" else settings["temperature"]
    margin = 0.0 if change == "no margin" else settings["margin"]
    both = settings["both_sides"] and change != "other side only"
    total, count = 0.0, len(vectors)
    for side in (0, 1) if change != "one direction" else (0,):
        for j in range(count):
            scores = {}
            for k in range(count):
                for of in (0, 1):
                    itself, true = (k == j and of == side), (k == j and of != side)
                    if (of == side and not both) or (itself and change != "self"):
                        continue
                    if settings["mask_duplicates"] and change != "none masked" and not itself:
                        theirs = texts[k] if change != "only the same sentence" else [texts[k][of]]
                        shared = any(text in texts[j] for text in theirs)
                        if shared and (k != j or change == "positive masked"):
                            continue
                    a, b = vectors[j][side], vectors[k][of]
                    dot = settings.get("similarity") == "dot" or change == "inner product"
                    plain = (a * b).sum() if dot and change != "cosine" else cosine(a, b)
                    off = margin if true or change == "margin for all" else 0.0
                    if change == "in one direction" and side == 1:
                        off = 0.0
                    if change == "after temperature":
                        scores[k, of] = plain / temperature - off
                    else:
                        scores[k, of] = (plain - off) / temperature
            true = scores.get((j, 1 - side), torch.zeros((), dtype=torch.float64))
            total = total - true + torch.log(sum(torch.exp(score) for score in scores.values()))
    return total


def texts_of(pairs):
    return [(a["tokens"], b["tokens"]) for a, b in pairs]


def contrastive(w, pairs, change=None, settings=None, **_):
    h = (lambda vector: vector) if change == "no mlp" else (lambda vector: projected(w, vector))
    vectors = [tuple(h(embedding(w, side, change)) for side in pair) for pair in pairs]
    return eq8(vectors, texts_of(pairs), settings["contrastive"], change)


def in_groups(loss):
    """The sum of a loss over groups of neighbouring pairs, one per GPU (EMS v2 IV-C)."""

    def grouped(w, pairs, change=None, settings=None, **_):
        size = len(pairs) if change == "one group" else settings["contrastive"]["negatives"]
        step = 1 if change == "neighbours overlap" else size
        starts = range(0, len(pairs), step)
        parts = [pairs[start : start + size] for start in starts]
        return sum(loss(w, part, change, settings=settings) for part in parts)

    return grouped


def align(w, pairs, change=None, **_):
    """Lightweight Eq. 5: the inner product."""
    total = 0.0
    u, v = ([embedding(w, pair[side]) for pair in pairs] for side in (0, 1))

    def score(a, b):
        plain = cosine(a, b) if change == "cosine" else (a * b).sum()
        return plain / 0.1 if change == "temperature" else plain

    for j in range(len(pairs)):
        true = score(u[j], v[j])
        row = sum(torch.exp(score(u[j], v[k])) for k in range(len(pairs)))
        column = sum(torch.exp(score(u[k], v[j])) for k in range(len(pairs)))
        total = total - (true - torch.log(row))
        if change != "one direction":
            total = total - (true - torch.log(column))
    return total


def similarity(w, pairs, change=None, summed=False, **_):
    """Lightweight Eq. 6; `summed` is the authors' code, which does not divide by the pairs."""
    total = 0.0
    factor = math.pi if change == "pi" else math.pi / 2
    u, v = ([embedding(w, pair[side]) for pair in pairs] for side in (0, 1))

    def share(vectors, j1, j2):
        product = cosine if change == "cosine" else (lambda a, b: (a * b).sum())
        every = [product(vectors[j1], other) for other in vectors]
        own = every[j2]
        return torch.exp(own) / sum(torch.exp(value) for value in every)

    for j1 in range(len(pairs)):
        for j2 in range(len(pairs)):
            if change == "no diagonal" and j1 == j2:
                continue
            value = torch.cos(factor * (share(u, j1, j2) - share(v, j1, j2)))
            total = total - (value - 1 if change == "no logarithm" else torch.log(value))
    return total * len(pairs) if summed and change != "mean" else total


def matryoshka(w, pairs, change=None, settings=None, **_):
    """Ours: Eq. 8 of the first k values of the embedding, the mean over k."""
    sizes = settings["matryoshka"]["dimensions"]
    sizes = sizes[:1] if change == "one size" else sizes
    total = 0.0
    for size in sizes:
        part = slice(None) if change == "all dimensions" else slice(size)
        part = slice(-size, None) if change == "last dimensions" else part
        vectors = [tuple(embedding(w, side)[part] for side in pair) for pair in pairs]
        total = total + eq8(vectors, texts_of(pairs), settings["contrastive"])
    return total if change == "sum" else total / len(sizes)


def context(w, pairs, change=None, settings=None, **_):
    """CCL 2019, section 3.1: M(Enc(x)) of the true text and of the changed one."""
    printed = (settings["context"]["loss"] == "printed") != (change == "the other loss")
    total = 0.0
    for pair in pairs:
        for truth, text in zip((1, 0), pair, strict=True):
            truth = 1 - truth if change == "labels swapped" else truth
            odds = (w["heads.context.weight"][0] * embedding(w, text, change)).sum()
            odds = odds if change == "no bias" else odds + w["heads.context.bias"][0]
            p = 1 / (1 + torch.exp(-odds))
            right = p * truth + (1 - p) * (1 - truth)
            share = 1.0 if change == "sum" else 0.5
            if change != "true text only" or truth:
                total = total + share * (1 - right if printed else -torch.log(right))
    return total


def coherence(w, pairs, change=None, targets=None, **_):
    """CCL 2019, section 3.2: (score - R(Enc(c)))^2 of both texts of a pair."""
    total = 0.0
    for at, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            score = targets[at + side * len(pairs)]
            score = 1.0 if change == "no score" else score
            predicted = (w["heads.coherence.weight"][0] * embedding(w, text, change)).sum()
            bias = 0 if change == "no bias" else w["heads.coherence.bias"][0]
            error = score - predicted - bias
            squared = abs(error) if change == "absolute" else error * error
            total = total + (squared if change == "sum" else 0.5 * squared)
    return total


REFERENCES = {
    "coherence": coherence,
    **dict.fromkeys(("context", "context printed"), context),
    "xtr mean-max": xtr,
    "contrastive mean-max": contrastive,
    **{function.__name__: function for function in (xtr, ugt, smlm, mlm, align, similarity)},
    "xtr distinct": partial(xtr, distinct=True),
    "ugt distinct": partial(ugt, distinct=True),
    "similarity sum": partial(similarity, summed=True),
    **dict.fromkeys(("contrastive", "dot", "margin", "both sides", "duplicates"), contrastive),
    **dict.fromkeys(("groups", "groups of both sides"), in_groups(contrastive)),
    "align in groups": in_groups(align),
    "matryoshka": matryoshka,
}
