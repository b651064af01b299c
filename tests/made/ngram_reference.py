"""Features and vectors of character n-grams by plain loops. Imports nothing from ems."""

from mmh3 import hash as murmur

PLACES = 1 << 20


def number(value, seed):
    return murmur(value.to_bytes(4, "little"), seed, signed=False)


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
        return murmur(text.encode(), 0, signed=False) % PLACES
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
