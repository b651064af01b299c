"""The record of a benchmark, which its folder's `__init__.py` holds.

A record is light to import: the experiment, the rules and the command line read it. Modules of the
folder that need libraries are `data`, `score`, `table` and `demo`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ems.base.schema import Settings

if TYPE_CHECKING:
    from ems.config.experiment import Experiment


@dataclass(frozen=True)
class Shown:
    """A table of a benchmark, as the PDF and the report introduce it.

    `place` orders the tables as the papers do; `paper` is the paper table that it reproduces;
    `report` is a paragraph of reStructuredText; `among` selects its systems; `first` shows only the
    first of them.
    """

    caption: str
    place: int = 10_000
    paper: str = ""
    report: str = ""
    among: "Callable[[Experiment], list[str]] | None" = None
    first: bool = False

    def of(self, experiment: "Experiment") -> list[str]:
        """Return the systems of the table, in their order."""
        return experiment.shown if self.among is None else self.among(experiment)


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, or data that only decontamination looks at. `task` is what a paper calls it
    in a table of several benchmarks, where that is not its `title`.

    Its data: `status` (open, closed, withdrawn), `licence`, how to `obtain` what is not open, what
    `source` a user may name, and where its files are `published` if not in units.tsv. `codes` are
    the languages by our codes, or the column of the language table that has them. `corpus` is the
    OPUS corpus that the data are or, with `drawn`, are drawn from (no experiment may train on
    that). `dev` is the archive that has a dev part. `demo` is the demo's folder, where several
    benchmarks share one.

    Its scores: `sets` are the data that it reads, most often its own; `family` is the protocol of
    ems.benchmarks.families that scores it, or the benchmark whose `score` does, which then shows
    both in its tables; `between` says which languages a system needs two of ("" any two, "en"
    English and another), `pivot` the language without which there is no score where its family does
    not say it; `parallel` is true if all languages have the same sentences. `hours` is
    the time limit of a job without a GPU. `joins` maps a table or figure of several benchmarks to
    the place of this one in it.

    Its settings: `protocol` is what an experiment may say under `evalsets.<name>.protocol` of how
    it is scored, `probe` what it may say under `probes.<name>` of its classifiers.
    """

    title: str
    task: str = ""
    status: str = "open"
    licence: str = ""
    obtain: str = ""
    source: str = ""
    published: str = ""
    codes: Mapping[str, str] | str = "iso1"
    unseen: bool = False
    by_language: bool = False
    corpus: str = ""
    drawn: bool = False
    dev: str = ""
    demo: str = ""
    sets: tuple[str, ...] | None = None
    family: str = ""
    between: str | None = None
    pivot: str = ""
    parallel: bool = False
    hours: int = 1
    protocol: type[Settings] | None = None
    probe: type[Settings] | None = None
    tables: Mapping[str, Shown] = field(default_factory=dict)
    figures: Mapping[str, Shown] = field(default_factory=dict)
    joins: Mapping[str, int] = field(default_factory=dict)

    @property
    def english(self) -> bool:
        """True if English is a language of the set, false if it is one side of every pair."""
        return self.family != "retrieval"

    @property
    def needed(self) -> str:
        """The language that every score needs, "" for none. A probe may set another `source`."""
        return "en" if self.family or self.probe else self.pivot

    @property
    def parts(self) -> bool:
        """True if an experiment may use one part of the set's documents and train on others."""
        return bool(self.corpus) and not self.drawn


def same(codes: str) -> dict[str, str]:
    """Map the languages of "de en fr" to the same codes in the benchmark."""
    return {code: code for code in codes.split()}
