"""The demo's XNLI: a premise of two facts, and a hypothesis about them.

The hypothesis is one of the facts (entailment), a fact with a phrase replaced (contradiction), or a
third sentence (neutral). The contradictions are not strict: a buyer of bread may buy cheese too. As
in XNLI, each premise is in three pairs, one per label, and neither side alone reveals it.
"""

from ems.corpora.demo.grammar import DemoSentence
from ems.corpora.demo.mirror import Files, demo_codes, lines, table
from ems.corpora.demo.texts import Material, joined, read_labels

PLACE = 8
PREMISES = {"train": 400, "dev": 50, "test": 100}  # three pairs each
REQUESTS = ("please_", "i_would_like")  # prefixes of template names

Facts = tuple[DemoSentence, ...]  # two in a premise, one in a hypothesis


def demo_files(material: Material) -> Files:
    rows = [
        (*(joined(each, "en") for each in texts), label.replace("contradiction", "contradictory"))
        for *texts, label in _inferences(material, PREMISES["train"])
    ]
    train = table([("premise", "hypo", "label"), *rows])
    files: Files = {"XNLI-MT-1.0/multinli/multinli.train.en.tsv": train}
    labels = read_labels(__file__)
    for split in ("dev", "test"):
        pairs = _inferences(material, PREMISES[split])
        rows_of = [
            labels["row"].format(code, joined(premise, code), joined(other, code), label, number)
            for code in demo_codes("xnli")
            for number, (premise, other, label) in enumerate(pairs, start=1)
        ]
        files[f"XNLI-1.0/xnli.{split}.tsv"] = lines([labels["columns"], *rows_of])
    return files


def _inferences(material: Material, premises: int) -> list[tuple[Facts, Facts, str]]:
    """Return (premise, hypothesis, label), all three labels for each premise, in random order."""
    others = [each for each in material.templates.values() if not each.name.startswith(REQUESTS)]
    statements = [each for each in others if each.frames["en"].text.endswith(".")]
    facts, pairs = material.drawer.draw_evenly(statements, 3 * premises), []
    for at in range(0, len(facts), 3):
        premise, third = (facts[at], facts[at + 1]), facts[at + 2]
        fact = premise[at % 2]
        pairs += [
            (premise, (fact,), "entailment"),
            (premise, (third,), "neutral"),
            (premise, (material.drawer.neighbour(fact),), "contradiction"),
        ]
    return material.shuffled(pairs)
