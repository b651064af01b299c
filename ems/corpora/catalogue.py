"""What we know about corpora (catalogue.tsv), and whether one that an experiment names exists.

What OPUS has is ems/config/languages/opus.py's to say. The catalogue adds the licence, how clean a
corpus is (NOISE), the one whose text it `repeats`, and the `versions` that are not in that table:
those of corpora that are no OPUS release, and later ones. A corpus of the user's own needs no
entry: it gives its `source:` instead.
"""

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.files import read_table
from ems.config.experiment import Corpus, Experiment
from ems.config.languages.opus import opus_date, opus_releases

UNRATED = "unrated"
NOISE = {  # in the order in which `ems init` takes them
    "clean": "translated sentence by sentence by people",
    "fair": "translated by people, aligned by programs, or with another flaw",
    UNRATED: "not rated",
    "strings": "labels and messages of programs",
    "mined": "found on the web by a program",
    "names": "names and titles, no sentences",
}


@dataclass(frozen=True)
class Known:
    """A corpus of the catalogue: `versions` beside those of OPUS's table, noise class, the corpus
    whose text it repeats, licence ('': not known), and a note.
    """

    versions: tuple[str, ...] = ()
    noise: str = UNRATED
    repeats: str = ""
    licence: str = ""
    note: str = ""


@cache
def catalogue() -> dict[str, Known]:
    """Return the corpora of the catalogue by name."""
    rows = read_table(Path(__file__).with_suffix(".tsv"))
    return {
        row.pop("name"): Known(tuple(row.pop("versions").split()), **row) for row in map(dict, rows)
    }


def about(name: str) -> Known:
    """Return what is known about a corpus, which may be nothing."""
    return catalogue().get(name, Known())


def licence_of(name: str) -> str:
    """Return the licence of a corpus, or where to look for it."""
    return about(name).licence or f"see https://opus.nlpl.eu/{name}.php"


def versions_of(name: str) -> tuple[str, ...]:
    """Return the versions of a corpus, those of OPUS first; none if it is unknown."""
    return (*opus_releases().get(name, ()), *about(name).versions)


def check_corpora(experiment: Experiment) -> None:
    """Raise `EmsError` with the key and what it may have meant for an unknown corpus or version."""
    for at, corpus in enumerate(experiment.corpora):
        _check(f"corpora.{at}", corpus)
    for corpus in experiment.validation:
        _check("validation", corpus)


def _check(key: str, corpus: Corpus) -> None:
    if corpus.own or corpus.documents:
        return
    versions = versions_of(corpus.name)
    newer = "a newer one, and a corpus of your own, needs `source:`, an address or a DIRECTORY"
    if not versions:
        named = did_you_mean(corpus.name, {*catalogue(), *opus_releases()})
        raise EmsError(
            f"{key}.name: unknown corpus {corpus.name!r}{named}; `ems corpora search LANGUAGE` "
            f"lists those of OPUS, as of {opus_date()} ({newer})"
        )
    if corpus.version not in versions:
        raise EmsError(
            f"{key}.version: unknown version {corpus.version!r} of {corpus.name}; "
            f"allowed: {', '.join(versions)} ({newer})"
        )


def did_you_mean(word: str, names: Collection[str]) -> str:
    """Return "; did you mean A or B?" of the names that are nearest to a word, or nothing."""
    folded = {name.lower(): name for name in sorted(names)}
    near = [folded[each] for each in difflib.get_close_matches(word.lower(), folded)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
