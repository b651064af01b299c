"""FLORES+ and BOUQuET in their publishers' columns, of made sentences."""

from itertools import product

from ems.corpora.demo.mirror import demo_codes

PARTS = {"devtest": slice(200), "dev": slice(200, 260)}  # sentences of each
SPLITS, LEVELS = {"test": "devtest", "dev": "dev"}, {"sentence": 1, "paragraph": 4}


def flores_plus(items):
    """Yield (place, rows) of each file; an item has a sentence per language."""
    for (language, code), part in product(demo_codes("flores_plus").items(), PARTS):
        texts = [item[language] for item in items[PARTS[part]]]
        rows = [{"id": at, "text": text, "split": part} for at, text in enumerate(texts)]
        yield f"{part}/{code}.jsonl", rows


def bouquet(items):
    places = product(demo_codes("bouquet").items(), SPLITS, LEVELS.items())
    for (language, code), split, (level, size) in places:
        texts = [item[language] for item in items[PARTS[SPLITS[split]]]]
        parts = [" ".join(texts[at : at + size]) for at in range(0, len(texts), size)]
        rows = [{"uniq_id": f"P{at:03}", "src_text": text} for at, text in enumerate(parts)]
        yield f"data/{level}_level/{split}/{code}.jsonl", rows
