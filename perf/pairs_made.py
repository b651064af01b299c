"""Pairs, vocabularies and shards for the measurements of training and evaluation.

They are 20,000 pairs each of Tatoeba de, fr, es, ja, ru and 6,000 each of bible-uedin sw, et, uk.
With `--demo` they are 300 pairs each of two languages of the embedded demo. gpu.py takes a thousand
pairs of each language (`few`), from the demo if the corpora are missing.
"""

from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path

import yaml
from measured import demo_lines, demo_pairs

from ems.config.experiment import Experiment
from ems.config.languages import pair_name
from ems.config.load import load_experiment, load_site
from ems.config.systems import SystemSettings
from ems.corpora.moses import read_pairs
from ems.shards.index import shards_in
from ems.shards.reader import PairStore

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
SOURCES = dict.fromkeys(("de", "fr", "es", "ja", "ru"), ("Tatoeba", "v2021-08-07", 20_000))
SOURCES |= dict.fromkeys(("sw", "et", "uk"), ("bible-uedin", "v1", 6_000))
SIZES: dict[str, dict[str, int]] = {
    "small": {"layers": 2, "width": 256, "heads": 4, "feed_forward": 1024},
    "ems": {"layers": 6, "width": 1024, "heads": 16, "feed_forward": 4096},
    "13x384": {"layers": 13, "width": 384, "heads": 6, "feed_forward": 1536},
    "12x512": {"layers": 12, "width": 512, "heads": 8, "feed_forward": 2048},
    "lightweight": {"layers": 2, "width": 512, "heads": 8, "feed_forward": 1024},
    "plus": {"layers": 0, "table": 256, "ngrams": 65536},
}
DEMO_SIZES = {name: {"layers": 1, "width": 32, "heads": 4, "feed_forward": 64} for name in SIZES}
DEMO_SIZES["plus"] = {"layers": 0, "table": 32, "ngrams": 512}
FEW, JOINED = 1_000, 3  # pairs of each language; short pairs of the demo in one, at most
FEW_PIECES = {"corpora": 2_000, "demo": 4_000}  # a pair then has about 50 tokens
Texts = dict[str, Iterable[tuple[str, str]]]  # the pairs of English with each language
SETTINGS = """
description: measured
seed: 1
sources: {}
splits: {}
corpora: [{name: Bench, version: v1, source: made}]
validation: null
evalsets: {tatoeba: {version: v1}}
benchmarks: [tatoeba]
decontaminate: {against: []}
segmenters: {default: none}
objectives: {}
train: {steps: 1}
systems: {ems: {}}
tables: {}
"""


def prepare(
    folder: Path, shared: Path | None, size: str, wanted: tuple[int, ...], few: bool = False
) -> dict[int, int]:
    """Write pairs, vocabularies of about the `wanted` sizes, and shards; return their true sizes.

    `shared` holds the corpora, None means the demo; `size` is one of SIZES.
    """
    from ems.shards.writer import write_shards
    from ems.text.subwords import train_vocabulary, write_sample

    texts = few_texts(shared) if few else _texts(shared)
    sources = [_write_tsv(folder / "text", code, lines) for code, lines in texts.items()]
    files = {}
    for pieces in wanted:
        model = (SIZES if shared else DEMO_SIZES)[size]
        experiment = _write_experiment(folder / f"{pieces}", list(texts), pieces, model)
        place = folder / f"{pieces}"
        write_sample(experiment, sources, place / "sample.txt")
        files[pieces] = train_vocabulary(experiment, place / "sample.txt", place / "bpe.model")
        for source in sources:
            write_shards(source, place / "bpe.model", place / "shards" / source.stem)
    return files


def _texts(shared: Path | None) -> Texts:
    if shared is None:
        return {code: demo_lines(code) for code in ("de", "ja")}
    return {code: _real_lines(shared, code) for code in SOURCES}


def few_texts(shared: Path | None) -> Texts:
    """Return FEW pairs of each language. The demo's sentences are all short, so up to JOINED
    neighbours are joined: lengths vary as in real text, and pairs have about 50 tokens.
    """
    from ems.corpora.demo.grammar import OTHERS

    if shared is not None:
        return {code: islice(_real_lines(shared, code), FEW) for code in SOURCES}
    return {code: islice(_joined(demo_pairs(code)), FEW) for code in OTHERS}


def _joined(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Join 1, 2, ... JOINED, 1, 2, ... neighbours, side by side."""
    rest = iter(pairs)
    for count in cycle(range(1, JOINED + 1)):
        some = list(islice(rest, count))
        if not some:
            return
        yield tuple(" ".join(side) for side in zip(*some, strict=True))


def load(place: Path) -> Experiment:
    """Load the experiment that `prepare` wrote to `place`, <folder>/<pieces>."""
    site = load_site(ROOT / "config.yaml")
    return load_experiment("bench", site, place)


def store_of(place: Path) -> tuple[SystemSettings, PairStore]:
    """Return the settings of its system, and its pairs."""
    experiment = load(place)
    settings = experiment.systems["ems"]
    folders = [s for pair in sorted((place / "shards").iterdir()) for s in shards_in(pair)]
    store = PairStore(folders, list(experiment.languages), settings.model.max_tokens)
    return settings, store


def _real_lines(shared: Path, code: str) -> Iterator[tuple[str, str]]:
    name, version, count = SOURCES[code]
    pair = pair_name("en", code)
    path = shared / "opus" / name / version / "moses" / f"{pair}.txt.zip"
    return islice(read_pairs(path, name, pair), count)


def _write_tsv(folder: Path, code: str, lines: Iterable[tuple[str, str]]) -> Path:
    """Write a pair file of clean lower-case text, as the segmenter `none` does."""
    path = folder / (pair_name("en", code) + ".tsv")
    path.parent.mkdir(exist_ok=True)
    rows = ([" ".join(side.lower().split()) for side in sides] for sides in lines)
    both = (row for row in rows if all(row))
    text = "".join(f"{first}\t{second}\t{at}\n" for at, (first, second) in enumerate(both, 1))
    path.write_text(text, encoding="utf-8")
    return path


def _write_experiment(
    place: Path, codes: list[str], pieces: int, model: dict[str, int]
) -> Experiment:
    dropout = 0.1 if model["layers"] else 0.0
    settings = yaml.safe_load(SETTINGS) | {
        "languages": ["en", *codes],
        "vocabulary": {"size": pieces, "sample_lines": 300_000},
        "model": model
        | dict.fromkeys(("dropout", "attention_dropout"), dropout)
        | {"max_tokens": 120},
    }
    place.mkdir(exist_ok=True)
    (place / "bench.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    return load(place)
