"""External encoders: any sentence-transformers model, and any command that writes a .npy file. EMS
v2 section V compares with LASER, LASER2, SBERT-distill and LaBSE. They get tidied lines, as ours
do, and apply their own preprocessing. `identity` is the key of the embedding cache.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ems.base.errors import STDERR_CHARACTERS, EmsError, NotFinite, failed_program, mistake
from ems.base.files import check_readable, sha256_file, visible_files
from ems.base.progress import Progress
from ems.base.provenance import digest, source_hash
from ems.base.texts import batched
from ems.model.folder import has_code
from ems.text.normalise import tidy_lines

MODEL_BATCH = 64  # sentences of similar length in a batch of sentence-transformers
CALL_LINES = 100_000  # lines in one call of a command: 0.4 GB of vectors at d = 1,024


class SentenceTransformersEncoder:
    """A sentence-transformers model: a local folder, or a name on the Hugging Face Hub."""

    def __init__(self, model: str, device: str | None = None) -> None:
        self.model, self.what = _loaded(model, device), f"sentence-transformers model {model}"
        folder = Path(model)
        if folder.is_dir():
            files = visible_files(folder)
            content = {str(path.relative_to(folder)): sha256_file(path) for path in files}
        else:  # the commit on the Hub, if known
            config = getattr(getattr(self.model[0], "auto_model", None), "config", None)
            content = str(getattr(config, "_commit_hash", None) or "")
        versions = {name: version(name) for name in ("sentence-transformers", "transformers")}
        device_and_source = [str(self.model.device), source_hash("ems.bench.peers")]
        self.identity = digest([model, content, versions, *device_and_source])

    def encode(
        self,
        lines: list[str],
        language: str | None = None,
        what: str = "encode",
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Return embeddings float32[len(lines), d]; `language` appears only in the log."""
        own = Progress(what and f"{what} {language or ''}".rstrip(), len(lines), "sentences")
        parts, counted = [], progress or own
        for batch in batched(tidy_lines(lines), len):
            with _reported(self.what, "use"):
                vectors = self.model.encode(batch, batch_size=MODEL_BATCH, show_progress_bar=False)
            parts.append(vectors.astype(np.float32, copy=False))
            counted.add(len(batch))
        own.close()
        return checked(_joined(parts), len(lines), self.what)

    def token_counts(self, lines: list[str], language: str) -> list[int]:
        """Count the tokens of each line, without special tokens."""
        if not lines:
            return []
        cut = {"add_special_tokens": False, "truncation": False}
        return [len(ids) for ids in self.model.tokenizer(tidy_lines(lines), **cut)["input_ids"]]


def _loaded(model: str, device: str | None) -> Any:
    if find_spec("sentence_transformers") is None:
        raise mistake("no sentence-transformers", model=model)
    if model.startswith((".", "/", "~")) and not Path(model).is_dir():
        raise EmsError(f"{model}: no such folder; expected a sentence-transformers model")
    if has_code(Path(model)):
        raise mistake("code in the folder", model=model)
    from sentence_transformers import SentenceTransformer

    for path in Path(model).rglob("*") if Path(model).is_dir() else ():
        check_readable(path)
    with _reported(model, "load"):
        return SentenceTransformer(model, device=device).eval()


@contextmanager
def _reported(model: str, what: str) -> Iterator[None]:
    """Turn any error of sentence-transformers, or a library below it, into an `EmsError`."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split())[:STDERR_CHARACTERS]
        raise mistake("library failed", model=model, what=what, said=said) from None


class CommandEncoder:
    """A program that reads lines from the file `{lines}` (UTF-8, LF) and writes float32[n, d] to
    the .npy file `{out}`; `{language}` becomes the language code, "und" for an unseen language.
    Raises `EmsError` for quotes that no shell takes, and without {lines} or {out}.
    """

    def __init__(self, command: str) -> None:
        from ems.bench.encoders import command_files  # here: it loads the settings of experiments

        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise EmsError(f"command {command!r}: {error}; check its quotes") from None
        for field in ("{lines}", "{out}"):
            if not any(field in word for word in self.words):
                raise mistake("field of a command", command=command, field=field)
        self.width = 0  # of the vectors; unknown before the first call
        files = {path: sha256_file(Path(path)) for path in command_files(self.words)}
        self.identity = digest([self.words, files, source_hash("ems.bench.peers")])

    def encode(self, lines: list[str], language: str, what: str = "encode") -> np.ndarray:
        """Return embeddings float32[len(lines), d]. Raises `EmsError` if the command fails."""
        progress = Progress(f"{what} {language}", len(lines), "sentences")
        tidied, parts = tidy_lines(lines), []
        for start in range(0, len(lines), CALL_LINES):
            parts.append(self._run(tidied[start : start + CALL_LINES], language))
            progress.add(len(parts[-1]))
        progress.close()
        return _joined(parts)

    def _run(self, lines: Sequence[str], language: str) -> np.ndarray:
        with tempfile.TemporaryDirectory(prefix="ems-command-") as folder:
            source, out = Path(folder) / "lines.txt", Path(folder) / "vectors.npy"
            source.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
            call = self.words
            fields = {"{lines}": str(source), "{language}": language, "{out}": str(out)}
            for field, value in fields.items():
                call = [word.replace(field, value) for word in call]
            _call(call)
            what = f"command {call[0]}"
            vectors = checked(_read(out, what), len(lines), what)
        width = vectors.shape[1]
        if self.width and width != self.width:
            raise EmsError(f"{what}: vectors of width {width}; earlier ones had {self.width}")
        self.width = width
        return vectors


def _call(call: list[str]) -> None:
    """Run a command; raise `EmsError` with the end of its stderr if it fails."""
    with tempfile.TemporaryFile() as complaints:
        try:
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
            done = subprocess.run(call, **quiet, stderr=complaints)
        except OSError as error:
            raise mistake("command not installed", program=call[0], error=error) from None
        if done.returncode:
            raise failed_program(f"command {call[0]}", done.returncode, complaints)


def _read(path: Path, what: str) -> np.ndarray:
    try:
        with open(path, "rb") as reader:
            return np.lib.format.read_array(reader)  # no pickled objects, no archives
    except FileNotFoundError:
        raise EmsError(f"{what}: it succeeded but did not write the file {{out}}") from None
    except (OSError, ValueError, EOFError) as error:
        raise EmsError(f"{what}: {{out}} is not a valid .npy file: {error}") from None


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)


def checked(vectors: np.ndarray, count: int, what: str) -> np.ndarray:
    """Return `vectors`; raise `EmsError` unless they are finite float32[count, d] with d > 0."""
    shape = f"{vectors.dtype}{list(vectors.shape)}"
    if vectors.dtype != np.float32 or vectors.ndim != 2:
        raise EmsError(f"{what}: expected float32[{count}, d], found {shape}")
    if len(vectors) != count or (count and not vectors.shape[1]):
        raise EmsError(f"{what}: expected a vector for each of {count:,} lines, found {shape}")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise NotFinite(f"{what}: the vector of line {bad[0] + 1:,} is not finite")
    return vectors
