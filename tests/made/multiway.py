"""Multi-parallel text: corpora that share their English, and the brute-force join of it."""

import random
from itertools import combinations

from made.mirror import translations

from ems.text.normalise import KEYS

CODES = ("de", "fr", "ja")  # besides English
CORPORA = ("One", "Two")
ROWS = 400


def draw_rows(seed, letters=False):
    """(corpus, language) -> rows (English, text); many share English up to case and punctuation.

    Some texts are the same in two languages or under two English sentences, some rows repeat, and
    some English has no letters, unless all must have some.
    """
    draw = random.Random(seed)
    items = list(translations(120, ("en", *CODES), seed, least=2))
    rows = {}
    for place in [(corpus, code) for corpus in CORPORA for code in CODES]:
        rows[place] = []
        for _ in range(ROWS):
            item, other = draw.choices(items, k=2)
            english = [item["en"], item["en"].title(), f"{item['en']} !", "- ?"]
            english = draw.choice(english[:3] if letters else english)
            text = draw.choice([item[place[1]], item[place[1]], other[place[1]], item["en"]])
            rows[place].append((english, text))
    return rows


def write_rows(folder, rows):
    """The segmented pair file of each corpus and language, as the workflow has them."""
    paths = []
    for (corpus, code), texts in rows.items():
        codes = sorted(("en", code))
        path = folder / "text/segmented" / corpus / "v1" / f"{'-'.join(codes)}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        sides = [dict(zip(("en", code), row, strict=True)) for row in texts]
        lines = (
            "\t".join([*(side[c] for c in codes), str(n)]) for n, side in enumerate(sides, start=7)
        )
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return sorted(paths, key=lambda path: (path.stem, path.parts[-3]))


def groups_of(rows, key="folded"):
    """Key of an English sentence -> language -> its distinct texts."""
    groups = {}
    keys_of = KEYS[key]
    for (_, code), texts in rows.items():
        for english, text in texts:
            if shared := keys_of([english])[0]:
                groups.setdefault(shared, {}).setdefault(code, set()).add(text)
    return groups


def brute_force(rows, key="folded"):
    """Every further pair, language pair -> {(text, text)}, and how many the join can make of it
    with repetitions and with texts that are the same in both languages.
    """
    pairs, made = {}, {}
    for texts in groups_of(rows, key).values():
        for pair in combinations(sorted(texts), 2):
            both = [(one, two) for one in texts[pair[0]] for two in texts[pair[1]]]
            made["-".join(pair)] = made.get("-".join(pair), 0) + len(both)
            found = pairs.setdefault("-".join(pair), set())
            found.update((one, two) for one, two in both if one != two)
    return pairs, made


def read_pairs(folder):
    """Language pair -> its rows (text, text, line)."""
    files = sorted(folder.glob("*.tsv"))
    return {
        path.stem: [tuple(line.split("\t")) for line in path.read_text("utf-8").splitlines()]
        for path in files
    }
