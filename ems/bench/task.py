"""What a benchmark is given, and what every score file says whatever was measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ems.benchmarks import benchmark, sets_of
from ems.benchmarks.record import Benchmark
from ems.config import Experiment, stage_hash
from ems.config.benchmarks import protocol_of
from ems.config.experiment import UNSEEN, EvalSet
from ems.config.provenance import digest
from ems.errors import EmsError
from ems.evalsets.lines import MISSING
from ems.evalsets.sets import data_files
from ems.evalsets.whole import check_file
from ems.retrieval import normalised
from ems.settings import Settings


class LineEncoder(Protocol):
    """Anything that turns lines of a language into vectors."""

    def encode(self, lines: list[str], language: str, what: str = ...) -> np.ndarray: ...


@dataclass(frozen=True)
class Task:
    """An encoder, the system that it is of, and the benchmark, whose sets lie in `folders`;
    `scratch` is a folder on disk for what does not fit into memory.
    """

    encoder: LineEncoder
    experiment: Experiment
    system: str
    benchmark: str
    folders: Mapping[str, Path]
    scratch: Path = Path(".")

    @property
    def record(self) -> Benchmark:
        """What the benchmark says of itself."""
        return benchmark(self.benchmark)

    @property
    def sets(self) -> tuple[str, ...]:
        """The evaluation sets of the benchmark; the first has the languages."""
        return sets_of(self.benchmark)

    @property
    def folder(self) -> Path:
        """Where the first of its sets lies."""
        return self.folders[self.sets[0]]

    @property
    def evalset(self) -> EvalSet:
        """The first of its sets as the experiment uses it."""
        return self.experiment.evalsets[self.sets[0]]

    @property
    def protocol(self) -> Settings | None:
        """The settings of how it is scored."""
        return protocol_of(self.experiment, self.benchmark)

    @property
    def spoken(self) -> dict[str, str]:
        """The benchmark's codes that this system is scored on -> the language."""
        return self.experiment.of_system(self.system).spoken(self.sets[0])

    @property
    def trained(self) -> dict[str, str]:
        """Those of `spoken` that the system is trained on."""
        return {code: name for code, name in self.spoken.items() if name != UNSEEN}

    def vectors(self, lines: list[str], language: str, where: str) -> np.ndarray:
        """Embeddings of length 1, float32[len(lines), d]; `where` says in words what they are of.

        Raises `EmsError` for a sentence whose embedding is zero or not finite.
        """
        return normalised(self.encoder.encode(lines, language, f"encode {where}"), where)

    def features(self, lines: list[str], language: str, where: str) -> np.ndarray:
        """Embeddings as they come, float32[len(lines), d], for a classifier.

        Raises `EmsError` for a sentence whose embedding is not finite.
        """
        vectors = self.encoder.encode(lines, language, f"encode {where}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            line = lines[bad[0]]
            raise EmsError(
                f"{where}: the embedding of sentence {bad[0] + 1} is not finite: {line[:60]!r}"
            )
        return vectors

    def header(self) -> dict[str, Any]:
        """Of which data and which system a score file is."""
        names = {"system": self.system, "benchmark": self.benchmark}
        versions = [_version(self.experiment.evalsets[name]) for name in self.sets]
        return {
            "benchmark": self.benchmark,
            "version": ", ".join(dict.fromkeys(versions)),
            "system": self.system,
            "system_hash": stage_hash(self.experiment, "bench", **names),
            "data_sha256": digest({name: _content(path) for name, path in self._files()}),
            "versions": {name: version_of(name) for name in ("ems", "numpy", "torch")},
        }

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Every file that the scores depend on, by its name in the folder of its set."""
        for name in self.sets:
            folder = self.folders[name]
            for path in data_files(self.experiment, name, folder):
                yield path.relative_to(folder).as_posix(), path


def _version(evalset: EvalSet) -> str:
    return f"{evalset.version}+{evalset.part}" if evalset.part else evalset.version


def _content(path: Path) -> Any:
    """The SHA-256 of a file; of a folder (Reuters' news, a million files) names and sizes.

    Raises `EmsError` when it is not there.
    """
    if not path.exists():
        raise EmsError(f"{path}: {MISSING}")
    if not path.is_dir():
        return check_file(path)
    files = (item for item in path.rglob("*") if item.is_file())
    return digest({str(item.relative_to(path)): item.stat().st_size for item in files})
