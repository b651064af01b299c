"""Embeddings kept on disk, so that sentences which several benchmarks share are encoded once.

The sentences of FLORES-200 in a language are what flores200, xsim and xsim++ all encode.

    <folder>/<key>.safetensors   float32[n, d] of one call, the key and a checksum in its header

Notable choices:
- an entry is one call, all its lines in their order: (whose vectors, language, texts). A vector
  differs in its last bits with the other lines of its batch, so vectors of single lines put
  together anew would give a score that depends on which benchmark ran first. So it is the same
  bytes with the cache and without;
- whose vectors: the encoder's `identity` (weights, vocabulary, settings, the source that encodes,
  the device). An encoder without one is not cached;
- an entry whose key, checksum or shape is not what it must be is deleted and encoded again, with a
  line in the log; an entry is written beside its place and renamed, so jobs side by side only ever
  see whole ones;
- bounded: beyond `limit` bytes those that were not used for longest go; one that is more than half
  of that is not kept (a language of BUCC);
- it can only save time: a full disk or a folder that cannot be written is a line in the log.

To clear it, delete the folder: `rm -r results/<experiment>/embeddings`.
"""

import hashlib
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ems.bench.task import LineEncoder
from ems.progress import log

FOLDER = "embeddings"  # of results/<experiment>
SUFFIX, PARTIAL = ".safetensors", ".part"
Header = dict[str, str]


@dataclass(frozen=True)
class CachedEncoder:
    """An encoder with an `identity`, asked only for what is not in `folder` (of `limit` bytes)."""

    encoder: LineEncoder
    identity: str
    folder: Path
    limit: int

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """What the encoder gives, float32[len(lines), d]."""
        key = key_of(self.identity, language, lines)
        path = self.folder / f"{key}{SUFFIX}"
        found = _read(path, key, len(lines))
        if found is not None:
            log.info("%s %s: %s sentences, encoded before", what, language, f"{len(lines):,}")
            return found
        vectors = self.encoder.encode(lines, language, what)
        if 2 * vectors.nbytes <= self.limit and vectors.dtype == np.float32:
            self._keep(path, key, vectors)
        return vectors

    def _keep(self, path: Path, key: str, vectors: np.ndarray) -> None:
        try:
            _write(path, key, np.ascontiguousarray(vectors))
            make_room(self.folder, self.limit)
        except OSError as error:
            log.warning("%s: embeddings not kept: %s", path, error)


class CountingEncoder(CachedEncoder):
    """The same of an encoder that counts its tokens."""

    def token_counts(self, lines: list[str], language: str) -> list[int]:
        """Tokens of each line, as the encoder counts them."""
        return self.encoder.token_counts(lines, language)


def cached(encoder: LineEncoder, folder: Path, megabytes: int) -> LineEncoder:
    """The encoder with a cache; as it is where it has no `identity`, or there is no room (0)."""
    identity = getattr(encoder, "identity", "")
    if not identity or not megabytes:
        return encoder
    kind = CountingEncoder if hasattr(encoder, "token_counts") else CachedEncoder
    return kind(encoder, identity, folder, megabytes * 1_000_000)


def key_of(identity: str, language: str, lines: list[str]) -> str:
    """Hex SHA-256 of whose vectors, of which language, of which texts; each with its length."""
    whole = hashlib.sha256()
    for text in (identity, language, *lines):
        content = text.encode("utf-8", "surrogatepass")
        whole.update(len(content).to_bytes(8, "little"))
        whole.update(content)
    return whole.hexdigest()


def _read(path: Path, key: str, count: int) -> np.ndarray | None:
    """The vectors of an entry; None when there is none, or it was not whole and is gone now."""
    try:
        with safe_open(path, "numpy") as entry:
            header, vectors = entry.metadata() or {}, entry.get_tensor("vectors")
    except FileNotFoundError:
        return None
    except (OSError, SafetensorError) as error:
        return _refused(path, str(error))
    if header != _header(key, vectors):
        return _refused(path, "its key or its checksum is another one")
    if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != count:
        return _refused(path, f"{vectors.dtype}{list(vectors.shape)} for {count:,} lines")
    with suppress(OSError):
        os.utime(path)  # used now: the last to go
    return vectors


def _refused(path: Path, why: str) -> None:
    log.warning("%s: damaged (%s), encoded again", path, why)
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _header(key: str, vectors: np.ndarray) -> Header:
    return {"key": key, "sha256": hashlib.sha256(vectors.data).hexdigest()}


def _write(path: Path, key: str, vectors: np.ndarray) -> None:
    """Whole or not at all; a name of its own beside it, since another job may write the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{uuid.uuid4().hex}{PARTIAL}")
    try:
        save_file({"vectors": vectors}, partial, _header(key, vectors))
        os.replace(partial, path)
    except SafetensorError as error:  # a full disk
        raise OSError(str(error)) from None
    finally:
        partial.unlink(missing_ok=True)


def make_room(folder: Path, limit: int) -> None:
    """Delete the files that were not used for longest until all are `limit` bytes or fewer."""
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
