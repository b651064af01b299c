"""What a benchmark is given, and the header of every score file."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import ems
from ems.base.errors import EmsError
from ems.base.provenance import DIGITS, digest
from ems.base.schema import Json, Settings
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
    """Anything that turns lines of a language into vectors."""

    def encode(self, lines: list[str], language: str, what: str = ...) -> np.ndarray: ...


@dataclass(frozen=True)
class Task:
    """An encoder, its system, and the benchmark, whose sets lie in `folders`; what does not fit
    into memory goes to the folder `scratch`.
    """

    encoder: LineEncoder
    experiment: Experiment
    system: str
    benchmark: str
    folders: Mapping[str, Path]
    scratch: Path = Path(".")

    @property
    def record(self) -> Benchmark:
        return benchmark(self.benchmark)

    @property
    def sets(self) -> tuple[str, ...]:
        """The evaluation sets of the benchmark; the first has the languages."""
        return sets_of(self.benchmark)

    @property
    def folder(self) -> Path:
        return self.folders[self.sets[0]]

    @property
    def evalset(self) -> EvalSet:
        return self.experiment.evalsets[self.sets[0]]

    @property
    def protocol(self) -> Settings | None:
        return self.experiment.protocol_of(self.benchmark)

    @property
    def spoken(self) -> dict[str, str]:
        """The benchmark's codes that this system is scored on -> the language."""
        return self.experiment.of_system(self.system).spoken(self.sets[0])

    @property
    def trained(self) -> dict[str, str]:
        return {code: name for code, name in self.spoken.items() if name != UNSEEN}

    def vectors(self, lines: list[str], language: str, where: str) -> np.ndarray:
        """Return embeddings of length 1, float32[len(lines), d]; `where` names the lines.

        Raises `EmsError` for a sentence whose embedding is zero or not finite.
        """
        return normalised(self.encoder.encode(lines, language, f"encode {where}"), where)

    def features(self, lines: list[str], language: str, where: str) -> np.ndarray:
        """Return embeddings as they are, float32[len(lines), d], for a classifier.

        Raises `EmsError` for a sentence whose embedding is not finite.
        """
        vectors = self.encoder.encode(lines, language, f"encode {where}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            number, line = bad[0] + 1, lines[bad[0]][:60]
            raise EmsError(f"{where}: the embedding of sentence {number} is not finite: {line!r}")
        return vectors

    def embedded(
        self, lines: list[str], language: str, where: str, normalise: bool = True
    ) -> np.ndarray:
        """Return `vectors` of hundreds of thousands of lines, or `features`, encoded in parts.

        Up to MEMORY_LIMIT bytes are in memory; more lie memory-mapped in a file in `scratch`.
        Raises `EmsError` as `vectors` and `features` do, and for a disk without room.
        """
        encode = self.vectors if normalise else self.features
        vectors = None
        for start in range(0, len(lines), LINES_AT_ONCE):
            beyond = f"{where}, after {start:,} sentences" if start else where
            part = encode(lines[start : start + LINES_AT_ONCE], language, beyond)
            if vectors is None:
                vectors = empty((len(lines), part.shape[1]), self.scratch)
            vectors[start : start + len(part)] = part
        return vectors

    def header(self) -> Json:
        """Return the data and the system that a score file is of."""
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
    """Return the SHA-256 of a file, or of the names and sizes below a folder (Reuters' news)."""
    if not path.exists():
        raise EmsError(f"{path}: {MISSING}")
    if not path.is_dir():
        return check_file(path)
    files = (item for item in path.rglob("*") if item.is_file())
    return digest({str(item.relative_to(path)): item.stat().st_size for item in files})


def empty(shape: tuple[int, int], scratch: Path) -> np.ndarray:
    """Return float32 of a shape, in memory, or above MEMORY_LIMIT bytes in a file in `scratch`.

    The file has no name, so nothing is left of it whatever ends the process, and its space is
    claimed at once, so that a full disk is an error and not a crash later.
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
        raise EmsError(
            f"{scratch}: no room for {size:,} bytes of embeddings ({error.strerror or error}); "
            "free some space there, or put results/ on another disk"
        ) from error
