"""The encoder of a system, by its kind, and a cache of its embeddings on disk.

An entry is one call: encoder, language and all lines in order. Entries per line would make scores
depend on which benchmark ran first, because the other lines of a batch change the last bits of a
vector. A damaged entry is encoded again, and a full disk is only logged. Above `limit` bytes the
least recently used entries are deleted; an entry above half the limit is not kept.
"""

import hashlib
import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from glob import escape, glob
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ems.base.errors import EmsError
from ems.base.files import system_error, visible_files
from ems.base.progress import log
from ems.base.provenance import digest
from ems.bench.task import LineEncoder
from ems.config.systems import SystemSettings
from ems.model.folder import files_of

CLASSES = {  # by name, so that a job depends on the source of its own kind only
    "encoder": "ems.model.static.load_encoder",
    "folder": "ems.model.char_ngrams.load_encoder",
    "sentence-transformers": "ems.bench.peers.SentenceTransformersEncoder",
    "command": "ems.bench.peers.CommandEncoder",
    "char-ngram": "ems.model.char_ngrams.NgramEncoder",
    "fused": "ems.model.char_ngrams.FusedEncoder",
}
MODULES = {kind: name.rpartition(".")[0] for kind, name in CLASSES.items()}
CACHE_FOLDER = "embeddings"  # of results/<experiment>
SUFFIX, PARTIAL = ".safetensors", ".part"


def make_encoder(system: SystemSettings, trained: Path | None = None) -> LineEncoder:
    """Load the encoder of a system from its folder `trained`. Raises `EmsError` if that fails."""
    module, _, name = CLASSES[system.kind].rpartition(".")
    cls = getattr(import_module(module), name)
    if (system.trained or system.fitted) and trained is None:
        raise EmsError(f"kind: {system.kind} needs its model folder; give it with --model")
    if system.kind == "char-ngram":
        return cls.load(trained) if system.fitted else cls(system.ngrams)
    if system.kind in ("encoder", "fused", "folder"):
        return cls(trained or Path(system.place))
    return cls(system.place)


def model_files(system: SystemSettings) -> list[str]:
    """Return the local files of an external system: of its command or its model folder."""
    if system.kind == "command":
        return command_files(system.place.split())
    files_in = files_of if system.kind == "folder" else visible_files
    return [str(path) for path in files_in(Path(system.place))] if system.place else []


def command_files(words: Iterable[str]) -> list[str]:
    """Return the existing files among a command's words; `{language}` matches any text."""
    patterns = [escape(word).replace("{language}", "*") for word in words]
    return [path for each in patterns for path in sorted(glob(each)) if Path(path).is_file()]


@dataclass(frozen=True)
class CachedEncoder:
    encoder: LineEncoder
    identity: str
    folder: Path
    limit: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return embeddings float32[len(lines), d], from the cache if they are there."""
        key = digest([self.identity, language, lines])
        path = self.folder / f"{key}{SUFFIX}"
        vectors = _read(path, key, len(lines))
        if vectors is not None:
            log.info("%s %s: %s sentences, encoded before", what, language, f"{len(lines):,}")
            return vectors
        vectors = self.encoder.encode(lines, language, what)
        if 2 * vectors.nbytes <= self.limit and vectors.dtype == np.float32:
            try:
                _write(path, key, np.ascontiguousarray(vectors))
                make_room(self.folder, self.limit)
            except OSError as error:
                log.warning("%s: embeddings not kept: %s", path, error)
        return vectors


def cached(encoder: LineEncoder, folder: Path, megabytes: int) -> LineEncoder:
    """Wrap an encoder in a cache; unchanged without an `identity` or with `megabytes` 0."""
    identity = getattr(encoder, "identity", "")
    if not identity or not megabytes:
        return encoder
    return CachedEncoder(encoder, identity, folder, megabytes * 1_000_000)


def uncached(encoder: LineEncoder) -> LineEncoder:
    return encoder.encoder if isinstance(encoder, CachedEncoder) else encoder


def _read(path: Path, key: str, count: int) -> np.ndarray | None:
    """Return the vectors of an entry, or None if it is missing; delete a damaged entry."""
    try:
        if path.exists() and not path.is_file():  # opening a pipe might never end
            raise SafetensorError("no regular file")
        with safe_open(path, "numpy") as entry:
            header, vectors = entry.metadata() or {}, entry.get_tensor("vectors")
        if header != _header(key, vectors):
            raise SafetensorError("key or checksum does not match")
        if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != count:
            shape = f"{vectors.dtype}{list(vectors.shape)}"
            raise SafetensorError(f"{shape} for {count:,} lines")
    except FileNotFoundError:
        return None
    except (OSError, SafetensorError) as error:
        log.warning("%s: damaged (%s), encoded again", path, error)
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    with suppress(OSError):
        os.utime(path)  # marks it as recently used
    return vectors


def _header(key: str, vectors: np.ndarray) -> dict[str, str]:
    return {"key": key, "sha256": hashlib.sha256(vectors.data).hexdigest()}


def _write(path: Path, key: str, vectors: np.ndarray) -> None:
    """Write an entry under a unique name, then rename it: another job may write the same entry."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{uuid.uuid4().hex}{PARTIAL}")
    try:
        save_file({"vectors": vectors}, partial, _header(key, vectors))
        os.replace(partial, path)
    except SafetensorError as error:  # a full disk
        raise system_error(error, path) from None
    finally:
        partial.unlink(missing_ok=True)


def make_room(folder: Path, limit: int) -> None:
    """Delete the least recently used files until the rest is at most `limit` bytes."""
    files = []
    for path in (*folder.glob(f"*{SUFFIX}"), *folder.glob(f".*{PARTIAL}")):
        with suppress(OSError):  # another job may have made room too
            state = path.stat()
            files.append((state.st_mtime_ns, path.name, state.st_size))
    total = sum(size for _, _, size in files)
    for _, name, size in sorted(files):
        if total <= limit:
            return
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)
        total -= size
