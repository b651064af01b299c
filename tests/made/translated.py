"""Documents and their translations: German and English sentences made of the same parts."""

import random
from itertools import product

WHO = {
    "Der Arzt": "The doctor",
    "Die Lehrerin": "The teacher",
    "Mein Bruder": "My brother",
    "Der Präsident": "The president",
    "Das Kind": "The child",
    "Ein Polizist": "A policeman",
    "Die Königin": "The queen",
    "Unser Nachbar": "Our neighbour",
}
WHAT = {
    "kauft einen alten Wagen": "buys an old car",
    "liest ein Buch über Pflanzen": "reads a book about plants",
    "trinkt Wasser aus dem Fluss": "drinks water from the river",
    "baut ein Haus aus Holz": "builds a house of wood",
    "schreibt einen langen Brief": "writes a long letter",
    "verliert sein ganzes Geld": "loses all his money",
    "kocht Suppe mit Fisch": "cooks soup with fish",
    "spricht mit dem Richter": "speaks with the judge",
}
WHERE = {
    "in der Schule": "at school",
    "nach dem Krieg": "after the war",
    "im Winter": "in winter",
    "auf einer Insel": "on an island",
    "am Montag": "on Monday",
    "neben dem Bahnhof": "next to the station",
}


def sentence_pairs(count, seed=0):
    """Pairs (German, English), each once."""
    pairs = [
        (" ".join(part[0] for part in parts) + ".", " ".join(part[1] for part in parts) + ".")
        for parts in product(WHO.items(), WHAT.items(), WHERE.items())
    ]
    random.Random(seed).shuffle(pairs)
    return pairs[:count]


def documents(count, seed=0, dropped=0.1):
    """Two documents of `count` sentences, some joined, some left out; and the gold alignments."""
    rng, first, second, gold = random.Random(seed), [], [], []
    pairs = sentence_pairs(count, seed)
    while pairs:
        size = min(len(pairs), rng.choice((1, 1, 1, 2, 3)))
        taken, pairs = pairs[:size], pairs[size:]
        sides = [[pair[side] for pair in taken] for side in (0, 1)]
        if rng.random() < dropped:
            sides[rng.randrange(2)] = []
        elif size > 1:
            side = rng.randrange(2)
            sides[side] = [" ".join(sides[side])]
        places = [
            tuple(range(len(document), len(document) + len(own)))
            for document, own in zip((first, second), sides, strict=True)
        ]
        first += sides[0]
        second += sides[1]
        gold.append(tuple(places))
    return first, second, gold


def strict_and_lax(gold, found):
    """Strict and lax F1 in plain loops, sentences without a partner left out."""
    gold, found = ([pair for pair in each if pair[0] and pair[1]] for each in (gold, found))

    def share(of, among):
        strict = sum(pair in among for pair in of)
        lax = 0
        for own, other in of:
            targets = {t for one, two in among for t in two if set(one) & set(own)}
            lax += bool(targets & set(other))
        return strict / max(1, len(of)), lax / max(1, len(of))

    precision, recall = share(found, gold), share(gold, found)
    return tuple(2 * p * r / max(1e-9, p + r) for p, r in zip(precision, recall, strict=True))
