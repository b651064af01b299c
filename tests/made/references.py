"""Encoder, objectives and n-grams by their equations; gradients by autograd.

Imports nothing from ems. `change` names one term to get wrong, which the tests must notice.
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


ENCODER_CHANGES = [
    *("no position", "no input norm", "no scale", "one head", "key and value swapped"),
    *("no softmax", "looks back only", "not itself", "no residual of attention"),
    *("no residual of the inner layer", "norm before the residual", "relu", "one layer"),
    "same layer twice",
]


def norm(w, name, x):
    centred = x - x.mean(-1, keepdim=True)
    deviation = torch.sqrt((centred**2).mean(-1, keepdim=True) + w.get("eps", 1e-5))
    return centred / deviation * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def swish(x):
    return x / (1 + torch.exp(-x))


def attention(w, name, states, heads, change=None):
    """softmax(q k / sqrt(d / heads)) v of each token over all tokens of its sentence: [n, d]."""
    heads = 1 if change == "one head" else heads
    query, key, value = (
        part.unflatten(1, (heads, -1)).transpose(0, 1)  # [heads, n, d / heads]
        for part in linear(w, f"{name}.input", states).chunk(3, dim=1)
    )
    if change == "key and value swapped":
        key, value = value, key
    shares = query @ key.mT * (1 if change == "no scale" else key.shape[2] ** -0.5)
    if change != "no softmax":
        seen = torch.ones_like(shares)
        seen = seen.tril() if change == "looks back only" else seen
        if change == "not itself" and len(states) > 1:
            seen = seen - torch.eye(len(states))
        shares = torch.exp(shares) * seen
        shares = shares / shares.sum(2, keepdim=True)
    return linear(w, f"{name}.output", (shares @ value).transpose(0, 1).flatten(1))


def feed_forward(w, name, states, change=None, activation="silu"):
    """W_outer swish(W_inner x); gelu is x times the share of a normal distribution below it."""
    inner = linear(w, f"{name}.inner", states)
    if activation == "gelu":
        inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    else:
        inner = inner * (inner > 0) if change == "relu" else swish(inner)
    return linear(w, f"{name}.outer", inner)


def layer(w, name, states, heads, change=None, activation="silu"):
    mixed = attention(w, f"{name}.attention", states, heads, change)
    residual = states * (change != "no residual of attention")
    states = norm(w, f"{name}.attention_norm", residual + mixed)
    residual = states * (change != "no residual of the inner layer")
    branch = feed_forward(w, name, states, change, activation)
    if change == "norm before the residual":
        return residual + norm(w, f"{name}.output_norm", branch)
    return norm(w, f"{name}.output_norm", residual + branch)


def encoder_states(w, tokens, heads=1, change=None, activation="silu"):
    """The states [n, d] of tokens; `w` has the weights of an encoder with any number of layers."""
    states = w["encoder.tokens.weight"][torch.as_tensor(tokens)]
    if change != "no position":
        states = states + w["encoder.positions.weight"][: len(states)]
    states = states if change == "no input norm" else norm(w, "encoder.input_norm", states)
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
    return encoder_states(w, sentence["input"], w.get("heads", 1), w.get("change"))


def embedding(w, sentence, change=None):
    """Eq. 1 of EMS v2, or with mean-max [mean(H), max(H)] (CCL 2019, section 3)."""
    states = states_of(w, sentence)
    mean = states.mean(0)
    if w.get("pooling") != "mean-max":
        return mean
    sizes = states.abs() if change == "by absolute value" else states
    largest = states.gather(0, sizes.argmax(0, keepdim=True))[0]
    return torch.cat([largest, mean] if change == "maximum first" else [mean, largest])


def log_shares(w, vector, language, change=None):
    """log softmax of Eq. 2-5 over the pieces, with every optional part that has weights."""
    head = {name.removeprefix("heads.generative."): value for name, value in w.items()}
    if "languages.weight" in head:
        own = head["languages.weight"][language]
        own = norm(head, "language_norm", own) if "language_norm.weight" in head else own
        vector = torch.cat([own, vector])
    state = swish(linear(head, "mix", vector))
    state = norm(head, "norm", state) if "norm.weight" in head else state
    logits = head.get("output.weight", w["encoder.tokens.weight"]) @ state
    if "bias" in head and change != "no bias":
        logits = logits + head["bias"]
    return logits - torch.log(torch.exp(logits).sum())


def kl(shares, log_q, change=None):
    """sum_w p(w) (log p(w) - log q(w))."""
    entropy = 0.0 if change == "no entropy" else sum(p * math.log(p) for p in shares.values())
    return entropy - sum(p * log_q[word] for word, p in shares.items())


def shares_of(tokens, distinct=False, share=1.0):
    """N_w / |S| (Eq. 7), or 1 / |S| for each distinct token (the authors' code), times `share`."""
    return {w: share * (1 if distinct else tokens.count(w)) / len(tokens) for w in set(tokens)}


def sides(pairs):
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
            for text, absent in ((own, "other side only"), (other, "own side only")):
                if change != absent:
                    total = total - log_shares(w, embedding(w, text), side["language"])[word]
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


def projected(w, vectors):
    """h of EMS v2 Eq. 10-11, or the embeddings themselves where there is no MLP."""
    if "heads.contrastive.inner.weight" not in w:
        return vectors
    inner = linear(w, "heads.contrastive.inner", vectors)
    return linear(w, "heads.contrastive.outer", inner * (inner > 0))


def normalised(vectors):
    return vectors / torch.sqrt((vectors * vectors).sum(1, keepdim=True))


def embeddings(w, pairs, change=None):
    return [torch.stack([embedding(w, pair[at], change) for pair in pairs]) for at in (0, 1)]


def eq8(vectors, pairs, settings, change=None):
    """Eq. 8 with all options; vectors: of each side [B, d]."""
    count, texts = len(pairs), [[side["tokens"] for side in pair] for pair in pairs]
    temperature = 1.0 if change == "no temperature" else settings["temperature"]
    margin = 0.0 if change == "no margin" else settings["margin"]
    both = settings["both_sides"] and change != "other side only"
    masks = settings["mask_duplicates"] and change != "none masked"
    dot = settings.get("similarity") == "dot" or change == "inner product"
    every = torch.cat([*vectors])  # [2 B, d]
    every = every if dot and change != "cosine" else normalised(every)

    def is_candidate(anchor, other):
        (side, j), (of, k) = divmod(anchor, count), divmod(other, count)
        if anchor == other or (side == of and not both):
            return anchor == other and change == "self"
        theirs = texts[k] if change != "only the same sentence" else [texts[k][of]]
        same = masks and any(text in texts[j] for text in theirs)
        return not same or (k == j and change != "positive masked")

    total = 0.0
    for anchor in range(count if change == "one direction" else 2 * count):
        true, last = (anchor + count) % (2 * count), anchor >= count
        off = [margin * (other == true or change == "margin for all") for other in range(2 * count)]
        scores = every @ every[anchor]
        off = scores.new_tensor(off) * (not (change == "in one direction" and last))
        late = change == "after temperature"
        scores = scores / temperature - off if late else (scores - off) / temperature
        kept = [other for other in range(2 * count) if is_candidate(anchor, other)]
        total = total + torch.log(torch.exp(scores[kept]).sum()) - scores[true] * (true in kept)
    return total


def contrastive(w, pairs, change=None, settings=None, **_):
    vectors = embeddings(w, pairs, change)
    vectors = vectors if change == "no mlp" else [projected(w, side) for side in vectors]
    return eq8(vectors, pairs, settings["contrastive"], change)


def in_groups(loss):
    """The sum of a loss over groups of neighbouring pairs, one per GPU (EMS v2 IV-C)."""

    def grouped(w, pairs, change=None, settings=None, **_):
        size = len(pairs) if change == "one group" else settings["contrastive"]["negatives"]
        starts = range(0, len(pairs), 1 if change == "neighbours overlap" else size)
        parts = [pairs[start : start + size] for start in starts]
        return sum(loss(w, part, change, settings=settings) for part in parts)

    return grouped


def align(w, pairs, change=None, **_):
    """Lightweight Eq. 5: the inner product."""
    vectors = embeddings(w, pairs)
    u, v = map(normalised, vectors) if change == "cosine" else vectors
    scores = u @ v.T / (0.1 if change == "temperature" else 1)
    directions = [scores] if change == "one direction" else [scores, scores.T]
    return sum((torch.log(torch.exp(s).sum(1)) - s.diag()).sum() for s in directions)


def similarity(w, pairs, change=None, summed=False, **_):
    """Lightweight Eq. 6; `summed` is the authors' code, which does not divide by the pairs."""
    vectors = embeddings(w, pairs)
    vectors = map(normalised, vectors) if change == "cosine" else vectors
    u, v = (torch.exp(side @ side.T) for side in vectors)
    difference = u / u.sum(1, keepdim=True) - v / v.sum(1, keepdim=True)
    value = torch.cos((math.pi if change == "pi" else math.pi / 2) * difference)
    value = value - 1 if change == "no logarithm" else torch.log(value)
    total = -value.sum() + (value.trace() if change == "no diagonal" else 0)
    return total * len(pairs) if summed and change != "mean" else total


def matryoshka(w, pairs, change=None, settings=None, **_):
    """Ours: Eq. 8 of the first k values of the embedding, the mean over k."""
    sizes = settings["matryoshka"]["dimensions"]
    sizes = sizes[:1] if change == "one size" else sizes
    total = 0.0
    for size in sizes:
        part = slice(None) if change == "all dimensions" else slice(size)
        part = slice(-size, None) if change == "last dimensions" else part
        vectors = [side[:, part] for side in embeddings(w, pairs)]
        total = total + eq8(vectors, pairs, settings["contrastive"])
    return total if change == "sum" else total / len(sizes)


def predicted(w, head, pairs, change):
    head = f"heads.{head}"
    bias = 0 if change == "no bias" else w[f"{head}.bias"]
    return torch.cat(embeddings(w, pairs, change)) @ w[f"{head}.weight"][0] + bias


def context(w, pairs, change=None, settings=None, **_):
    """CCL 2019, section 3.1: M(Enc(x)) of the true text and of the changed one."""
    printed = (settings["context"]["loss"] == "printed") != (change == "the other loss")
    truth = torch.tensor([1, 0]).repeat_interleave(len(pairs))
    truth = 1 - truth if change == "labels swapped" else truth
    p = 1 / (1 + torch.exp(-predicted(w, "context", pairs, change)))
    right = p * truth + (1 - p) * (1 - truth)
    losses = 1 - right if printed else -torch.log(right)
    losses = losses * truth if change == "true text only" else losses
    return losses.sum() * (1.0 if change == "sum" else 0.5)


def coherence(w, pairs, change=None, targets=None, **_):
    """CCL 2019, section 3.2: (score - R(Enc(c)))^2 of both texts of a pair."""
    scores = 1.0 if change == "no score" else torch.as_tensor(targets)
    errors = scores - predicted(w, "coherence", pairs, change)
    losses = errors.abs() if change == "absolute" else errors**2
    return losses.sum() * (1.0 if change == "sum" else 0.5)


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
