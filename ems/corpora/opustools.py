"""Download OPUS's Moses zips with the package OpusTools.

OpusTools chooses the name of the file it downloads, so it gets a folder of its own. It prints its
failures and returns, or ends in a traceback: only an existing file counts as success. It waits for
a silent server forever, so sockets get a timeout.
"""

import contextlib
import io
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ems.base.errors import EmsError
from ems.base.progress import log
from ems.config.file import OPUSTOOLS
from ems.corpora.download import Downloads
from ems.corpora.slots import slot


@contextmanager
def moses_by_opustools(location: str, out: Path, downloads: Downloads) -> Iterator[Path]:
    """Yield the Moses zip at `location` in a temporary folder. Raises `EmsError` if it fails."""
    folder = out.with_name(f".{out.name}.{OPUSTOOLS}.ems.part")
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed run
    folder.mkdir(parents=True)
    try:
        with slot(OPUSTOOLS, downloads.per_host, downloads.slots):
            printed = _get(location, folder, downloads.stall)
        files = sorted(folder.rglob("*.zip"))
        if len(files) != 1:
            raise EmsError(
                f"{location}: OpusTools downloaded {len(files)} files instead of one ({printed}); "
                "check the network, the corpus, its version and the language pair"
            )
        yield files[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _get(location: str, folder: Path, stall: float) -> str:
    get = opus_get()
    corpus, version, _, name = location.removeprefix(f"{OPUSTOOLS}:").split("/")
    first, second = name.removesuffix(".txt.zip").split("-")
    printed, timeout = io.StringIO(), socket.getdefaulttimeout()
    socket.setdefaulttimeout(stall)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            get(
                source=first,
                target=second,
                directory=corpus,
                release=version,
                preprocess="moses",
                download_dir=str(folder),
                suppress_prompts=True,
            ).get_files()
    except (Exception, SystemExit) as error:  # OpusTools catches nothing itself
        raise EmsError(
            f"{location}: OpusTools failed ({type(error).__name__}: {error}); check the network, "
            "or set `sources` in config.yaml to a host or a directory"
        ) from None
    finally:
        socket.setdefaulttimeout(timeout)
    lines = printed.getvalue().replace("\r", "\n").strip().split("\n")
    last = lines[-1].strip() or "it printed nothing"
    log.info("OpusTools: %s", last)
    return last


def opus_get() -> type:
    try:
        from opustools import OpusGet
    except ImportError as error:
        raise EmsError(
            f"the source {OPUSTOOLS!r} needs the package opustools, which is not installed "
            f"({error}): pip install opustools, or set `sources` to a host or a directory"
        ) from None
    return OpusGet
