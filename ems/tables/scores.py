"""Read the score files of a benchmark and check that they may share a table: the same benchmark,
version, SHA-256 and protocol in each, each system once, and each label of the same language in all.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from ems.base.errors import Damaged, mistake
from ems.bench.scores import ENGLISH, UNSEEN, Score, ScoreFile, read_score_file
from ems.bench.significance import Sample, sampled

Families = Mapping[str, Sequence[str]]
Label = Callable[[ScoreFile, Score], str]  # the label of a score in a table


@dataclass(frozen=True)
class Scores:
    """The scores of one system on one benchmark, or of several systems that share a table row."""

    file: ScoreFile
    system: str
    rows: tuple[tuple[str, str, Score], ...] = ()  # label, language or UNSEEN, score
    absent: tuple[str, ...] = ()  # score files missing for this row
    parallel: frozenset[str] = frozenset()  # labels of the same sentences in all languages

    @cached_property
    def as_file(self) -> ScoreFile:
        """The scores as one file, also if they are of several systems."""
        return replace(self.file, system=self.system, rows=[score for *_, score in self.rows])

    @property
    def version(self) -> str:
        return self.file.version

    @cached_property
    def labelled(self) -> dict[str, dict[str, list[Score]]]:
        """Measure ('': the file's metric) -> label -> scores."""
        groups: dict[str, dict[str, list[Score]]] = {"": {}}
        for label, _, score in self.rows:
            groups.setdefault(score.measure, {}).setdefault(label, []).append(score)
        return groups

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        return {
            measure: {label: sum(s.value for s in of) / len(of) for label, of in labels.items()}
            for measure, labels in self.labelled.items()
        }

    @property
    def values(self) -> dict[str, float]:
        return self.means[""]

    @property
    def measures(self) -> dict[str, dict[str, float]]:
        return {measure: values for measure, values in self.means.items() if measure}

    @cached_property
    def seeds(self) -> dict[str, list[float]]:
        """Label -> the value of each seed, for labels with seeds."""
        labels = self.labelled[""].items()
        seeds = {name: [s.value for s in scores if s.seed is not None] for name, scores in labels}
        return {name: values for name, values in seeds.items() if values}

    def sample(self, labels: Collection[str]) -> Sample:
        """Return the mean over labels, with its interval and its sentences."""
        rows = [self.labelled[""][label] for label in labels]
        try:
            return sampled(rows, self.parallel.issuperset(labels))
        except ValueError as error:
            raise Damaged(self.file.path, f"the hits are damaged ({error})") from None

    @cached_property
    def languages(self) -> dict[str, str]:
        """Label -> the experiment's language, or UNSEEN."""
        return {label: language for label, language, s in reversed(self.rows) if not s.measure}

    @cached_property
    def counts(self) -> dict[str, int]:
        """Label -> number of sentences."""
        return {label: scores[0].count for label, scores in self.labelled[""].items()}


def in_one_row(systems: Sequence[Scores], name: str) -> Scores:
    """Join the scores of several systems, or on several benchmarks, as one row."""
    rows = tuple(row for system in systems for row in system.rows)
    absent = tuple(file for system in systems for file in system.absent)
    parallel = frozenset().union(*(system.parallel for system in systems))
    return Scores(systems[0].file, name, rows, absent, parallel)


def read_scores(
    paths: Sequence[Path],
    benchmark: str,
    metric: str = "",
    label: Label = ScoreFile.label_of,
    order: Iterable[str] = (),
    families: Families | None = None,
    seen: bool | None = None,
    names: Mapping[Path, str] | None = None,
) -> list[Scores]:
    """Read score files of `benchmark` as one row per system, the systems of `order` first.

    `families`: name -> systems that share a row. `names`: score file -> its row, for several
    experiments. `seen`: keeps only languages that were trained on (True), or only the others.
    Raises `EmsError` for files that are malformed, cannot share a table or have no language left.
    """
    if not paths:
        raise mistake("no score files", benchmark=benchmark)
    files = [read_score_file(Path(path), benchmark, metric) for path in paths]
    if names is not None:
        files = [replace(file, system=names[file.path]) for file in files]
    _check_same_data(files, several=names is not None)
    systems = {}
    for file in files:
        rows = tuple((label(file, row), _language(file, row), row) for row in file.rows)
        parallel = frozenset(own for own, *_ in rows if file.parallel)
        systems[file.system] = Scores(file, file.system, rows, parallel=parallel)
    _check_same_languages(systems.values(), unseen=names is None)
    for name in order:
        missing = Scores(files[0], name, absent=(f"{name}/{files[0].path.name}",))
        systems.setdefault(name, missing)
    shown = [systems[name] for name in dict.fromkeys([*order, *systems])]
    return _joined(shown if seen is None else _narrowed(shown, seen), families or {})


def _language(file: ScoreFile, score: Score) -> str:
    """Return the experiment's language of a row other than English, or UNSEEN."""
    sides = [file.languages.get(name, ENGLISH) for name in (score.source, score.target)]
    if UNSEEN in sides:
        return UNSEEN
    return next((side for side in reversed(sides) if side != ENGLISH), ENGLISH)


def _joined(systems: list[Scores], families: Families) -> list[Scores]:
    """Join each family whose members share no label into one row, in the first one's place."""
    rows = {system.system: system for system in systems}
    for name, members in families.items():
        own = [rows[member] for member in members if member in rows]
        labels = [label for member in own for label in member.values]
        if len(own) > 1 and len(labels) == len(set(labels)):
            rows[own[0].system] = in_one_row(own, name)
            for member in own[1:]:
                del rows[member.system]
    return list(rows.values())


def _narrowed(systems: list[Scores], seen: bool) -> list[Scores]:
    """Keep only the languages trained on, or only the others, and the systems that have any."""
    rows = (tuple(row for row in each.rows if (row[1] != UNSEEN) == seen) for each in systems)
    kept = [replace(each, rows=own) for each, own in zip(systems, rows, strict=True)]
    if any(system.values for system in kept):
        return [system for system in kept if seen or system.values or system.absent]
    path = systems[0].file.path
    kind = "that was trained on" if seen else f"that no encoder saw ({UNSEEN})"
    raise mistake("kind of languages", path=path, kind=kind)


def _check_same_data(files: list[ScoreFile], several: bool) -> None:
    """Raise `EmsError` unless each system has one file and all have the same data."""
    first: dict[str, ScoreFile] = {}
    for file in files:
        if file.system in first:
            raise mistake("two score files", file=file, first=first[file.system].path)
        first[file.system] = file
    alike = several and all(a.same_data(b) for a, b in combinations(files, 2))
    for header in ("version", *(() if alike else ("data_sha256",)), "protocol"):
        values = [getattr(file, header) for file in files]
        if any(value != values[0] for value in values):
            pairs = zip(values, files, strict=True)
            lines = "\n".join(["", *(f"  {value}  {file.path}" for value, file in pairs), ""])
            raise mistake("scores of several data", file=files[0], header=header, lines=lines)


def _check_same_languages(systems: Iterable[Scores], unseen: bool) -> None:
    """Raise `EmsError` for a label with two languages; UNSEEN counts only with `unseen`."""
    first: dict[str, Scores] = {}
    for system in systems:
        for label, language in system.languages.items():
            if language == UNSEEN and not unseen:
                continue
            before = first.setdefault(label, system)
            if before.languages[label] != language:
                both = {"language": language, "other": before.languages[label]}
                raise mistake("two languages", this=system, before=before, label=label, **both)
