"""What a benchmark says of itself: the record that its folder's `__init__.py` holds.

A record is light to import: the experiment, the rules and the command line read it. What needs
libraries stands in the folder's other modules: `data` (files, readers), `score` (protocol), `table`
(declarations) and `demo` (generated data).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ems.config import Experiment


@dataclass(frozen=True)
class Shown:
    """A table of a benchmark, as the PDF and the report introduce it.

    `place`: tables stand in this order, that of the papers. `paper`: the papers' table that it is
    made after; `report`: a paragraph of reStructuredText.
    """

    caption: str
    place: int = 10_000
    paper: str = ""
    report: str = ""
    among: "Callable[[Experiment], list[str]] | None" = None
    first: bool = False

    def of(self, experiment: "Experiment") -> list[str]:
        """The systems of the table, in their order."""
        return experiment.shown if self.among is None else self.among(experiment)


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, or data that only decontamination looks at.

    Its data: `status` (open, closed, withdrawn), `licence`, `home`, how to `obtain` what is not
    open, what `source` a user may name, and where its files are `published` if not in units.tsv.
    `codes` are the languages by our codes, or the column of the language table that has them;
    `english` is false where English is the other side of every pair. `corpus` is the OPUS corpus
    that the data are (or, with `drawn`, are drawn from: then no experiment may train on it).

    Its scores: `sets` are the data that it reads, most often its own; `score` is the module that
    scores, where it is not the folder's own; `between` says which languages a system needs two of
    ("" any two, "en" English and another); `parallel`, that all languages have the same sentences.
    `hours` is the time limit of a job without a GPU. `joins`: table or figure that is of no single
    benchmark -> the place of this one among those that it is made of.
    """

    title: str
    status: str = "open"
    licence: str = ""
    home: str = ""
    obtain: str = ""
    source: str = ""
    published: str = ""
    codes: Mapping[str, str] | str = "iso1"
    english: bool = True
    unseen: bool = False
    by_language: bool = False
    corpus: str = ""
    drawn: bool = False
    parts: bool = False
    dev: bool = False
    sets: tuple[str, ...] | None = None
    score: str = ""
    between: str | None = None
    parallel: bool = False
    hours: int = 1
    shares: str = ""
    demo: str = ""
    demo_place: int = 1000
    tables: Mapping[str, Shown] = field(default_factory=dict)
    figures: Mapping[str, Shown] = field(default_factory=dict)
    joins: Mapping[str, int] = field(default_factory=dict)


def same(codes: str) -> dict[str, str]:
    """Languages whose codes in a benchmark are ours, of "de en fr"."""
    return {code: code for code in codes.split()}
