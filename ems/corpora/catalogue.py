"""The corpora that EMS knows by name, with their versions and licences (catalogue.tsv).

Source: the OPUS database in OpusTools 1.9.0. A corpus of the user's own needs no entry: it gives
its `source:` directory instead. ems/languages/opus.tsv lists the files of the version in the column
`counted`.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ems.config import Corpus, Experiment
from ems.errors import EmsError
from ems.files import read_table


@dataclass(frozen=True)
class Known:
    """A corpus of the catalogue; `counted` is the version whose files are listed, or ''."""

    versions: tuple[str, ...]
    counted: str
    licence: str


@cache
def catalogue() -> dict[str, Known]:
    """Return the corpora of the catalogue by name."""
    return {
        row["name"]: Known(tuple(row["versions"].split()), row["counted"], row["licence"])
        for row in read_table(Path(__file__).with_suffix(".tsv"))
    }


def check_corpora(experiment: Experiment) -> None:
    """Raise `EmsError` with the key and the allowed values for an unknown corpus or version."""
    for at, corpus in enumerate(experiment.corpora):
        _check(f"corpora.{at}", corpus)
    for corpus in experiment.validation:
        _check("validation", corpus)


def _check(key: str, corpus: Corpus) -> None:
    if corpus.own or corpus.documents:
        return
    known = catalogue().get(corpus.name)
    if known is None:
        raise EmsError(
            f"{key}.name: unknown corpus {corpus.name!r}; allowed: {', '.join(catalogue())} "
            "(a corpus of your own needs `source: DIRECTORY`)"
        )
    if corpus.version not in known.versions:
        raise EmsError(
            f"{key}.version: unknown version {corpus.version!r} of {corpus.name}; "
            f"allowed: {', '.join(known.versions)}"
        )
