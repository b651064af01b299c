"""Encoder, objectives and n-grams by their equations; gradients by autograd.

Imports nothing from ems.
"""

import math
from functools import partial

import torch

# --- character n-grams


PLACES = 1 << 20


def murmur(data, seed):
    from mmh3 import hash as hashed  # imported late: perf/gpu.py runs without mmh3

    data = data.to_bytes(4, "little") if isinstance(data, int) else data
    return hashed(data, seed, signed=False)


def grams(words, settings):
    """The n-grams of words between their marks, ("gram", text), and the words, ("whole", text)."""
    marked = [f"<{word}>" for word in words]
    sizes = range(settings.least, settings.most + 1)
    parts = {word[at : at + n] for word in marked for n in sizes for at in range(len(word) - n + 1)}
    return {("gram", part) for part in parts} | {("whole", word) for word in marked}


def place(gram):
    kind, text = gram
    if kind == "whole":
        return murmur(text.encode(), 0) % PLACES
    polynomial = 0
    for letter in text:
        polynomial = (polynomial * 2654435761 + ord(letter)) % 2**32
    return murmur(polynomial, len(text)) % PLACES


def plain_vector(places, weights, buckets):
    vector = [0.0] * buckets
    for at in places:
        negative, bucket = divmod(murmur(at, 0), 2**31)
        vector[bucket % buckets] += -weights[at] if negative else weights[at]
    return vector


# --- the encoder: one sentence at a time, no padding, no packing


def norm(w, name, x):
    centred = x - x.mean(-1, keepdim=True)
    deviation = torch.sqrt((centred**2).mean(-1, keepdim=True) + w.get("eps", 1e-5))
    return centred / deviation * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def swish(x):
    return x / (1 + torch.exp(-x))


def attention(w, name, states, heads):
    """softmax(q k / sqrt(d / heads)) v of each token over all tokens of its sentence: [n, d]."""
    query, key, value = (
        part.unflatten(1, (heads, -1)).transpose(0, 1)  # [heads, n, d / heads]
        for part in linear(w, f"{name}.input", states).chunk(3, dim=1)
    )
    shares = torch.exp(query @ key.mT * key.shape[2] ** -0.5)
    shares = shares / shares.sum(2, keepdim=True)
    return linear(w, f"{name}.output", (shares @ value).transpose(0, 1).flatten(1))


def feed_forward(w, name, states, activation="silu"):
    """W_outer swish(W_inner x); gelu is x times the share of a normal distribution below it."""
    inner = linear(w, f"{name}.inner", states)
    if activation == "gelu":
        inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    else:
        inner = swish(inner)
    return linear(w, f"{name}.outer", inner)


def layer(w, name, states, heads, activation="silu"):
    mixed = attention(w, f"{name}.attention", states, heads)
    states = norm(w, f"{name}.attention_norm", states + mixed)
    return norm(w, f"{name}.output_norm", states + feed_forward(w, name, states, activation))


def encoder_states(w, tokens, heads=1, activation="silu"):
    """The states [n, d] of tokens; `w` has the weights of an encoder with any number of layers."""
    states = w["encoder.tokens.weight"][torch.as_tensor(tokens)]
    if "encoder.positions.weight" in w:
        states = states + w["encoder.positions.weight"][: len(states)]
    states = norm(w, "encoder.input_norm", states)
    count = len({name.split(".")[2] for name in w if name.startswith("encoder.layers.")})
    for number in range(count):
        states = layer(w, f"encoder.layers.{number}", states, heads, activation)
    return states


# --- every objective, in float64


MASK = 2


def states_of(w, sentence):
    return encoder_states(w, sentence["input"], w.get("heads", 1))


def embedding(w, sentence):
    """Eq. 1 of EMS v2, or with mean-max [mean(H), max(H)] (CCL 2019, section 3)."""
    states = states_of(w, sentence)
    mean = states.mean(0)
    return torch.cat([mean, states.amax(0)]) if w.get("pooling") == "mean-max" else mean


def log_shares(w, vector, language):
    """log softmax of Eq. 2-5 over the pieces, with every optional part that has weights."""
    head = {name.removeprefix("heads.generative."): value for name, value in w.items()}
    if "languages.weight" in head:
        own = head["languages.weight"][language]
        own = norm(head, "language_norm", own) if "language_norm.weight" in head else own
        vector = torch.cat([own, vector])
    state = swish(linear(head, "mix", vector))
    state = norm(head, "norm", state) if "norm.weight" in head else state
    logits = head.get("output.weight", w["encoder.tokens.weight"]) @ state
    logits = logits + head["bias"] if "bias" in head else logits
    return logits - torch.log(torch.exp(logits).sum())


def kl(shares, log_q):
    """sum_w p(w) (log p(w) - log q(w))."""
    return sum(p * (math.log(p) - log_q[word]) for word, p in shares.items())


def shares_of(tokens, distinct=False, share=1.0):
    """N_w / |S| (Eq. 7), or 1 / |S| for each distinct token (the authors' code), times `share`."""
    return {w: share * (1 if distinct else tokens.count(w)) / len(tokens) for w in set(tokens)}


def sides(pairs):
    return [(a, b) for a, b in pairs] + [(b, a) for a, b in pairs]


def xtr(w, pairs, distinct=False, **_):
    """EMS v2 Eq. 6-7. If distinct, labels of a masked input hold <mask>, as the authors' code."""
    total = 0.0
    for own, other in sides(pairs):
        shares = shares_of(other["input" if distinct else "tokens"], distinct)
        total = total + kl(shares, log_shares(w, embedding(w, own), other["language"]))
    return total


def ugt(w, pairs, distinct=False, **_):
    """Lightweight Eq. 3 if the translation has the mask, Eq. 4 if the sentence has it.

    `distinct` is the authors' code: 0.5 is written first, then overwritten by 1 / |S'| or half.
    """
    total = 0.0
    for own, other in sides(pairs):
        hidden = own["hidden"].values()
        words = other["input" if distinct else "tokens"]
        shares = shares_of(words, distinct, 0.5 if hidden else 1.0)
        for word in hidden:
            before = shares.get(word, 0.0)
            shares[word] = (before or 0.5) if distinct else before + 0.5
        total = total + kl(shares, log_shares(w, embedding(w, own), other["language"]))
    return total


def smlm(w, pairs, **_):
    """Lightweight Eq. 1 for the choice of l that the mask makes."""
    total = 0.0
    for own, other in sides(pairs):
        for word in own["hidden"].values():
            for text in (own, other):
                total = total - log_shares(w, embedding(w, text), own["language"])[word]
    return total


def mlm(w, pairs, **_):
    """Each masked token from its own state; the mean over a sentence."""
    total = 0.0
    for own, _other in sides(pairs):
        states, hidden = states_of(w, own), own["hidden"]
        for at, word in hidden.items():
            total = total - log_shares(w, states[at], own["language"])[word] / len(hidden)
    return total


def projected(w, vectors):
    """h of EMS v2 Eq. 10-11, or the embeddings themselves where there is no MLP."""
    if "heads.contrastive.inner.weight" not in w:
        return vectors
    inner = linear(w, "heads.contrastive.inner", vectors)
    return linear(w, "heads.contrastive.outer", inner * (inner > 0))


def normalised(vectors):
    return vectors / torch.sqrt((vectors * vectors).sum(1, keepdim=True))


def embeddings(w, pairs):
    return [torch.stack([embedding(w, pair[at]) for pair in pairs]) for at in (0, 1)]


def eq8(vectors, pairs, settings):
    """Eq. 8 with all options; vectors: of each side [B, d]."""
    count, texts = len(pairs), [[side["tokens"] for side in pair] for pair in pairs]
    every = torch.cat([*vectors])  # [2 B, d]
    every = every if settings.get("similarity") == "dot" else normalised(every)

    def is_candidate(anchor, other):
        (side, j), (of, k) = divmod(anchor, count), divmod(other, count)
        if anchor == other or (side == of and not settings["both_sides"]):
            return False
        same = settings["mask_duplicates"] and any(text in texts[j] for text in texts[k])
        return not same or k == j

    total = 0.0
    for anchor in range(2 * count):
        true = (anchor + count) % (2 * count)
        scores = every @ every[anchor]
        margins = [settings["margin"] * (other == true) for other in range(2 * count)]
        scores = (scores - scores.new_tensor(margins)) / settings["temperature"]
        kept = [other for other in range(2 * count) if is_candidate(anchor, other)]
        total = total + torch.log(torch.exp(scores[kept]).sum()) - scores[true]
    return total


def contrastive(w, pairs, settings, **_):
    vectors = [projected(w, side) for side in embeddings(w, pairs)]
    return eq8(vectors, pairs, settings["contrastive"])


def in_groups(loss):
    """The sum of a loss over groups of neighbouring pairs, one per GPU (EMS v2 IV-C)."""

    def grouped(w, pairs, settings, **_):
        size = settings["contrastive"]["negatives"]
        parts = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        return sum(loss(w, part, settings=settings) for part in parts)

    return grouped


def align(w, pairs, **_):
    """Lightweight Eq. 5: the inner product."""
    u, v = embeddings(w, pairs)
    scores = u @ v.T
    return sum((torch.log(torch.exp(s).sum(1)) - s.diag()).sum() for s in (scores, scores.T))


def similarity(w, pairs, summed=False, **_):
    """Lightweight Eq. 6; `summed` is the authors' code, which does not divide by the pairs."""
    u, v = (torch.exp(side @ side.T) for side in embeddings(w, pairs))
    difference = u / u.sum(1, keepdim=True) - v / v.sum(1, keepdim=True)
    total = -torch.log(torch.cos(math.pi / 2 * difference)).sum()
    return total * len(pairs) if summed else total


def matryoshka(w, pairs, settings, **_):
    """Ours: Eq. 8 of the first k values of the embedding, the mean over k."""
    sizes = settings["matryoshka"]["dimensions"]
    vectors = embeddings(w, pairs)
    parts = [[side[:, :size] for side in vectors] for size in sizes]
    return sum(eq8(part, pairs, settings["contrastive"]) for part in parts) / len(sizes)


def predicted(w, head, pairs):
    return torch.cat(embeddings(w, pairs)) @ w[f"heads.{head}.weight"][0] + w[f"heads.{head}.bias"]


def context(w, pairs, settings, **_):
    """CCL 2019, section 3.1: M(Enc(x)) of the true text and of the changed one."""
    truth = torch.tensor([1, 0]).repeat_interleave(len(pairs))
    p = 1 / (1 + torch.exp(-predicted(w, "context", pairs)))
    right = p * truth + (1 - p) * (1 - truth)
    losses = 1 - right if settings["context"]["loss"] == "printed" else -torch.log(right)
    return losses.sum() / 2


def coherence(w, pairs, targets, **_):
    """CCL 2019, section 3.2: (score - R(Enc(c)))^2 of both texts of a pair."""
    return ((torch.as_tensor(targets) - predicted(w, "coherence", pairs)) ** 2).sum() / 2


def dense_losses(logits, target):
    """The cross-entropy and the KL divergence of softmax(logits) from a target, all rows dense."""
    labels = torch.zeros_like(logits)
    labels = labels.index_put((target.row, target.token), target.weight, accumulate=True)
    cross = -(labels * torch.log_softmax(logits, 1)).sum()
    return cross, cross + torch.xlogy(labels, labels).sum()


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
