"""The benchmarks of ems62, each of a few sentences, in the files in which they are published."""

import json

from made import evalsets as made
from made.mirror import translations, write_flores, write_lines, write_sib, write_tatoeba

from ems.config.languages import load_languages

PAIRS = 12  # in each file
TOPICS = ("entertainment", "geography", "health", "politics", "science/technology", "sports")
TOPICS += ("travel",)
XNLI = "ar bg de el en es fr hi ru sw th tr ur vi zh"
ENTAILED = ("entailment", "neutral", "contradiction") * 2
TESTED = ("valid", "test")
COUNTERFACTUAL = {"EN": ("train", *TESTED), "DE": TESTED, "JP": TESTED}


def sentences(names, seed, count=PAIRS):
    """Translations with a word of the file in them, so that no two files share a sentence."""
    items = translations(count, names, seed=seed, least=3)
    return [{name: f"{text} {seed}" for name, text in item.items()} for item in items]


def lines_of(code, seed, count=PAIRS):
    """Sentences of one language."""
    return [item[code] for item in sentences([code], seed, count)]


def write_evalsets(mirror, tatoeba):
    """Every benchmark as it is published, but for ParaCrawl, which lies among the corpora."""
    for code, items in tatoeba.items():
        write_tatoeba(mirror, code, [(item[code], item["en"]) for item in items])
    for language in load_languages().values():
        code = language.flores200
        write_flores(mirror, code, lines_of(code, f"flores {code}"))
        write_sib(mirror, code, topics_of(code))
    write_bucc(mirror / "bucc2018")
    write_xnli(mirror / "xnli")
    write_counterfactual(mirror / "counterfactual")
    write_xsimpp(mirror)
    made.pack(mirror / "pawsx" / "x-final.tar.gz", made.pawsx())


def write_bucc(folder):
    for code in ("de", "fr", "ru", "zh"):
        for part in ("sample", "training"):
            items = sentences([code, "en"], f"bucc {code} {part}")
            stem = folder / f"{code}-en" / f"{code}-en.{part}"
            for side in (code, "en"):
                lines = [f"{side}-{at}\t{item[side]}" for at, item in enumerate(items)]
                write_lines(stem.with_name(f"{stem.name}.{side}"), lines)
            write_lines(stem.with_name(f"{stem.name}.gold"), [f"{code}-0\ten-0"])


def topics_of(code):
    """A sentence of each topic in each part of SIB-200."""
    parts = ("train", "dev", "test")
    texts = {part: lines_of(code, f"sib {code} {part}", len(TOPICS)) for part in parts}
    return {part: list(zip(TOPICS, own, strict=True)) for part, own in texts.items()}


def write_xnli(folder):
    """Two pairs of each label in each language, and as many English ones to learn from."""
    for split in ("dev", "test"):
        rows = [
            made.xnli_row(code, label, *pair)
            for code in XNLI.split()
            for label, *pair in entailed(code, f"xnli {code} {split}")
        ]
        lines = ["\t".join(made.XNLI_COLUMNS), *rows]
        write_lines(folder / f"XNLI-1.0/xnli.{split}.tsv", lines)
    rows = [
        "\t".join([*pair, {"contradiction": "contradictory"}.get(label, label)])
        for label, *pair in entailed("en", "xnli train")
    ]
    path = folder / "XNLI-MT-1.0/multinli/multinli.train.en.tsv"
    write_lines(path, ["premise\thypo\tlabel", *rows])


def entailed(code, seed):
    """(label, premise, hypothesis) of one language."""
    lines = lines_of(code, seed)
    return list(zip(ENTAILED, lines[::2], lines[1::2], strict=True))


def write_counterfactual(folder):
    for code, splits in COUNTERFACTUAL.items():
        for split in splits:
            lines = lines_of(code.lower(), f"counterfactual {code} {split}")
            rows = [f"{line}\t{at % 2}" for at, line in enumerate(lines)]
            write_lines(folder / f"{code}_{split}.tsv", ["sentence\tis_counterfactual", *rows])


def write_xsimpp(mirror):
    """A sentence made of each English one of FLORES."""
    kinds = ("causality_alternation", "entity_replacement", "number_replacement")
    english = lines_of("eng_Latn", "flores eng_Latn")
    wrong = {f"not {line}": (kinds[at % 3], line) for at, line in enumerate(english)}
    errors = {line: {"errtype": kind, "src": own} for line, (kind, own) in wrong.items()}
    write_lines(mirror / "xsimpp" / "eng_Latn_augmented.devtest", wrong)
    path = mirror / "xsimpp" / "eng_Latn_errtype.devtest.json"
    path.write_text(json.dumps(errors), encoding="utf-8")
