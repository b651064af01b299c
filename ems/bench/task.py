"""The task that a benchmark scores, and the header of every score file."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import ems
from ems.base.errors import EmsError, mistake
from ems.base.provenance import DIGITS, digest
from ems.base.records import Json
from ems.base.schema import Settings
from ems.bench.retrieval import normalised
from ems.config.experiment import UNSEEN, EvalSet, Experiment
from ems.config.plugins import Benchmark, benchmark, sets_of
from ems.config.stages import stage_hash
from ems.corpora.content import check_file
from ems.corpora.evalsets.formats import MISSING
from ems.corpora.evalsets.sets import data_files

LINES_AT_ONCE = 1 << 15  # sentences encoded at once
MEMORY_LIMIT = 1 << 30  # bytes; 200,000 sentences of 1,024 values stay in memory


class LineEncoder(Protocol):
    def encode(self, lines: list[str], language: str, what: str = ...) -> np.ndarray: ...


@dataclass(frozen=True)
class Task:
    """An encoder, its system, and a benchmark to score it on."""

    encoder: LineEncoder
    experiment: Experiment
    system: str
    benchmark: str
    folders: Mapping[str, Path]  # of evaluation sets
    scratch: Path = Path(".")  # for arrays that do not fit into memory

    @property
    def record(self) -> Benchmark:
        return benchmark(self.benchmark)

    @property
    def sets(self) -> tuple[str, ...]:
        """The evaluation sets of the benchmark; the first one defines the languages."""
        return sets_of(self.benchmark)

    @property
    def folder(self) -> Path:
        return self.folders[self.sets[0]]

    @property
    def evalset(self) -> EvalSet:
        return self.experiment.evalsets[self.sets[0]]

    @property
    def protocol(self) -> Settings | None:
        """The protocol of the benchmark, for `extensions/` too; None if it leaves no choice."""
        return self.evalset.protocol if self.sets else None

    @property
    def languages(self) -> dict[str, str]:
        """Maps the benchmark's code of each language to score to our code, or to UNSEEN."""
        return self.experiment.of_system(self.system).spoken(self.sets[0])

    @property
    def trained(self) -> dict[str, str]:
        """The `languages` that the system was trained on."""
        return {code: name for code, name in self.languages.items() if name != UNSEEN}

    def vectors(self, lines: list[str], language: str, location: str) -> np.ndarray:
        """Return embeddings of length 1, float32[len(lines), d]. `location` names the lines in logs
        and errors. Raises `EmsError` if an embedding is zero or not finite.
        """
        return normalised(self.encoder.encode(lines, language, f"encode {location}"), location)

    def features(self, lines: list[str], language: str, location: str) -> np.ndarray:
        """Return `vectors` as encoded, for a classifier. Raises `EmsError` if one is not finite."""
        vectors = self.encoder.encode(lines, language, f"encode {location}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            number, line = bad[0] + 1, lines[bad[0]][:60]
            raise mistake("not finite", location=location, number=number, line=line)
        return vectors

    def embedded(
        self, lines: list[str], language: str, location: str, normalise: bool = True
    ) -> np.ndarray:
        """Return `vectors` (or `features`, without `normalise`) of many lines, encoded in parts. An
        array above MEMORY_LIMIT bytes is memory-mapped. Raises `EmsError` also if the disk is full.
        """
        encode = self.vectors if normalise else self.features
        vectors = None
        for start in range(0, len(lines), LINES_AT_ONCE):
            place = f"{location}, after {start:,} sentences" if start else location
            part = encode(lines[start : start + LINES_AT_ONCE], language, place)
            if vectors is None:
                vectors = empty((len(lines), part.shape[1]), self.scratch)
            vectors[start : start + len(part)] = part
        return vectors

    def header(self) -> Json:
        """Return the header of a score file: benchmark, system, checksums and library versions."""
        names = {"system": self.system, "benchmark": self.benchmark}
        versions, contents = [], {}
        for name in self.sets:
            evalset = self.experiment.evalsets[name]
            versions.append(evalset.version + (f"+{evalset.part}" if evalset.part else ""))
            for path in data_files(self.experiment, name, self.folders[name]):
                contents[path.relative_to(self.folders[name]).as_posix()] = _content(path)
        return {
            "benchmark": self.benchmark,
            "version": ", ".join(dict.fromkeys(versions)),
            "system": self.system,
            "system_hash": stage_hash(self.experiment, "bench", **names),
            "data_sha256": digest(contents),
            "data_files": {name: sha256[:DIGITS] for name, sha256 in contents.items()},
            "versions": {"ems": ems.__version__, **{p: version(p) for p in ("numpy", "torch")}},
        }


def _content(path: Path) -> Any:
    """Hash a file's bytes; of a folder (Reuters news), hash the names and sizes of its files."""
    if not path.exists():
        raise EmsError(f"{path}: {MISSING}")
    if not path.is_dir():
        return check_file(path)
    files = (item for item in path.rglob("*") if item.is_file())
    return digest({str(item.relative_to(path)): item.stat().st_size for item in files})


def empty(shape: tuple[int, int], scratch: Path) -> np.ndarray:
    """Allocate a float32 array; above MEMORY_LIMIT bytes it is memory-mapped in `scratch`, in a
    file without a name, which vanishes with the process. Its space is reserved at once, so that a
    full disk raises `EmsError` here instead of crashing the process later.
    """
    size = 4 * shape[0] * shape[1]
    if size <= MEMORY_LIMIT:
        return np.empty(shape, np.float32)
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=scratch) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, np.float32, "w+", shape=shape)
    except OSError as error:
        problem = error.strerror or error
        raise mistake("no room for embeddings", folder=scratch, size=size, error=problem) from error
