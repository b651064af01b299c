"""The demo's XNLI: facts side by side, and what follows from them.

A premise is two sentences, which are two facts; its hypothesis is one of them (entailment), one
with a phrase exchanged (contradiction), or a third sentence (neutral). Whoever buys bread may buy
cheese too, so that `contradiction` is a stand-in: the pair is as close as a real one, and only what
it says of the exchanged phrase is false. As in XNLI, each premise is in three pairs, one of each
label, and no label can be told from either side alone.
"""

from ems.corpora.demo.draw import Sentence, draw_evenly
from ems.corpora.demo.grammar import Template
from ems.corpora.demo.material import Files, Material, table

CODES = ("ar", "de", "en", "es", "fr", "ru", "zh")
PREMISES = {"train": 400, "dev": 50, "test": 100}  # three pairs each
COLUMNS = (
    *("language", "gold_label", "sentence1_binary_parse", "sentence2_binary_parse"),
    *("sentence1_parse", "sentence2_parse", "sentence1", "sentence2", "promptID", "pairID"),
    *("genre", "label1", "label2", "label3", "label4", "label5"),
    *("sentence1_tokenized", "sentence2_tokenized", "match"),
)
TOGETHER = {"zh": ""}  # what stands between two sentences, if not a space
REQUESTS = ("please_", "i_would_like")  # how the names of such templates begin

Facts = tuple[Sentence, ...]  # a premise has two of them, a hypothesis one


def made(material: Material) -> Files:
    """Return dev and test of all languages, and the English training part."""
    train = _inferences(material, PREMISES["train"])
    head = ("premise", "hypo", "label")
    rows = [
        (_text(premise, "en"), _text(other, "en"), _old(label)) for premise, other, label in train
    ]
    files: Files = {"XNLI-MT-1.0/multinli/multinli.train.en.tsv": table([head, *rows])}
    for split in ("dev", "test"):
        found = _inferences(material, PREMISES[split])
        rows_of = [_row(code, at, *pair) for code in CODES for at, pair in enumerate(found)]
        files[f"XNLI-1.0/xnli.{split}.tsv"] = table([COLUMNS, *rows_of])
    return files


def _inferences(material: Material, premises: int) -> list[tuple[Facts, Facts, str]]:
    """(premise, hypothesis, label): the three labels of each premise, in random order."""
    facts, found = draw_evenly(material.drawer, _statements(material), 3 * premises), []
    for at in range(0, len(facts), 3):
        premise, third = (facts[at], facts[at + 1]), facts[at + 2]
        fact = premise[at % 2]
        found += [
            (premise, (fact,), "entailment"),
            (premise, (third,), "neutral"),
            (premise, (material.drawer.neighbour(fact),), "contradiction"),
        ]
    return material.shuffled(found)


def _statements(material: Material) -> list[Template]:
    """The templates that say something: no questions and no requests."""
    templates = [t for t in material.demo.templates if not t.name.startswith(REQUESTS)]
    ends = [template.frames["en"][-1] for template in templates]
    return [
        template
        for template, end in zip(templates, ends, strict=True)
        if isinstance(end, str) and end.endswith(".")
    ]


def _old(label: str) -> str:
    """The label as the training part spells it."""
    return "contradictory" if label == "contradiction" else label


def _text(facts: Facts, language: str) -> str:
    return TOGETHER.get(language, " ").join(fact.texts[language] for fact in facts)


def _row(code: str, at: int, premise: Facts, hypothesis: Facts, label: str) -> list[str]:
    """A line of XNLI's table; the parses, which nobody reads, are empty."""
    texts = [_text(premise, code), _text(hypothesis, code)]
    cells = {
        "language": code,
        "gold_label": label,
        **dict(zip(("sentence1", "sentence2"), texts, strict=True)),
        **dict(zip(("sentence1_tokenized", "sentence2_tokenized"), texts, strict=True)),
        **{"promptID": str(1 + at), "pairID": str(1 + at), "genre": "demo", "match": "True"},
        **{f"label{n}": label for n in range(1, 6)},
    }
    return [cells.get(name, "") for name in COLUMNS]
