"""`ems init --files`: your own files as corpora, and pairs held out of them as a benchmark.

The pairs are held out once, in a file next to the experiment, so that scores remain comparable when
the text grows. Decontamination keeps both of their sentences out of training.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ems.base.errors import EmsError, mistake
from ems.base.texts import PACKED
from ems.config.corpora import OWN_VERSION
from ems.config.experiment import Corpus
from ems.config.languages import pair_name
from ems.config.text import CleanSettings
from ems.corpora.moses import CorpusFile
from ems.corpora.own import check_needs, own_files
from ems.text.clean import CleanJob, CleanSource, check_form, check_text, clean_pairs

LEAST = 500  # pairs of a file: a tenth is tested, a tenth validates
HELD_OUT, SHARE = 1000, 10  # pairs of a file at most, and the share of a smaller one
SEED = 1
ENOUGH = 100_000  # words for any vocabulary
# as in experiment.yaml.jinja
_DROPPED = dict.fromkeys(("undecodable", "format_characters", "identical", "duplicates"), "drop")
CLEAN = CleanSettings(**_DROPPED, max_bytes=10_000, max_characters=1000, max_ratio=9)
Place = tuple[str, list[str]]  # languages in the order of the columns, paths


@dataclass(frozen=True)
class OwnFile:
    """A file, or two with a side each, as a corpus; `test` are held out of its `pairs`."""

    name: str
    key: str
    paths: list[str]
    pairs: int
    words: int  # different ones
    test: list[tuple[str, str]]

    @property
    def divides(self) -> str:
        """The language whose sentence decides whether a pair validates."""
        codes = self.key.split("-")
        return "en" if "en" in codes else codes[0]

    @property
    def validation(self) -> float:
        """The share of the sentences that validate, to two digits."""
        return float(f"{min(1 / SHARE, HELD_OUT / self.pairs):.2g}")

    def lines(self) -> Iterator[str]:
        """Yield the lines of the benchmark (ems/benchmarks/own/data.py)."""
        first, second = pair_name(*self.key.split("-")).split("-")
        return (f"{first}\t{second}\t{one}\t{other}\n" for one, other in self.test)


def read_files(words: Sequence[str], codes: list[str]) -> list[OwnFile]:
    """Read the files of `--files`; `codes` are in the order of `--languages`. Raises `EmsError` for
    files without an obvious language pair, unreadable ones, and ones with fewer than LEAST pairs.
    """
    places = enumerate(_places(words, codes), start=1)
    return [_read(f"Mine{number}" if number > 1 else "Mine", *place) for number, place in places]


def _places(words: Sequence[str], codes: list[str]) -> list[Place]:
    places, like = list[Place](), "-".join(codes[:2])
    sides: dict[str, dict[str, str]] = {}  # name without the language -> language -> path
    for word in words:
        key, equals, path = word.partition("=")
        name = re.sub(rf"({'|'.join(PACKED)})$", "", word)
        stem, _, code = name.rpartition(".")
        inside = re.search(r"(?:^|[./_])([a-z]{2,3}-[a-z]{2,3})\.", name)
        if equals and not Path(word).exists():
            pair = key.split("-")
            if len({*pair}) != 2 or len(pair) != 2 or not {*pair} <= {*codes}:
                known = ",".join(codes)
                raise mistake("other languages", word=word, known=known, like=like, key=key)
            places.append((key, [path]))
        elif code in codes:
            sides.setdefault(stem, {})[code] = word
        elif inside and set(inside[1].split("-")) <= {*codes}:
            places.append((inside[1], [word]))
        elif len(codes) == 2:
            places.append(("-".join(codes), [word]))
        else:
            raise mistake("languages of a file", word=word, count=len(codes), like=like)
    for stem, own in sides.items():
        first = "en" if "en" in own else next(code for code in codes if code in own)
        others = [code for code in codes if code in own and code != first]
        if not others:
            other = next(code for code in codes if code != first)
            raise mistake("one side", path=own[first], other=f"{stem}.{other}")
        places += [(f"{first}-{code}", [own[first], own[code]]) for code in others]
    return places


def _read(name: str, key: str, paths: list[str]) -> OwnFile:
    from ems.benchmarks.families.retrieval import draw  # imported late: it loads libraries

    pair = pair_name(*key.split("-"))
    corpus = Corpus(name, OWN_VERSION, "", True, (pair,), None, paths={pair: tuple(paths)})
    if key != pair:
        corpus = replace(corpus, variants={pair: (key,)}, turned=frozenset({key}))
    files = tuple(own_files(corpus, pair))
    if missing := [path for path in files if not path.exists()]:
        raise EmsError(f"--files {missing[0]}: no such file; check the name")
    check_needs(list(files))
    source = CleanSource(name, OWN_VERSION, pair, files, small=True)
    job = CleanJob(source, corpus, [CorpusFile(corpus, files, key)], None, "", CLEAN, {}, "primary")
    check_text(job)
    with TemporaryDirectory() as scratch:
        cleaned = clean_pairs(job, Path(scratch))
        kept, words = 0, set()
        for block in cleaned.blocks:
            kept += block.count("\n")
            if len(words) < ENOUGH:
                words.update(word for word in block.lower().split() if not word.isdigit())
        check_form(files[0], cleaned.report)
        if kept < LEAST:
            why = [f"{count:,} {reason}" for reason, count in (+cleaned.report.removed).items()]
            found = {"kept": kept, "report": cleaned.report, "why": why}
            raise mistake("few pairs", files=" ".join(paths), least=LEAST, **found)

        def read() -> Iterator[list[str]]:
            for block in clean_pairs(job, Path(scratch)).blocks:
                yield from (line.split("\t")[:2] for line in block.split("\n")[:-1])

        test = draw(read, min(HELD_OUT, kept // SHARE), SEED)
    return OwnFile(name, key, paths, kept, len(words), test)
