"""The Moses zips of OPUS through the package OpusTools, an optional second way to them.

OpusTools asks the OPUS API for the address and downloads by itself, from a host that cannot be set,
to a file that it names itself: it gets a folder of its own. It prints its failures and returns, or
ends in a traceback, so only a file that is there counts as success, and its last line goes into the
error. It never gives up on a silent server, so sockets get a timeout while it runs.
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
from ems.config.load import OPUSTOOLS
from ems.corpora.download import Downloads
from ems.corpora.slots import slot


@contextmanager
def moses_by_opustools(location: str, out: Path, downloads: Downloads) -> Iterator[Path]:
    """Yield the Moses zip at `location` (`opus_location`) in a temporary folder beside `out`.

    Raises `EmsError` if the package is absent, fails, or brings nothing.
    """
    folder = out.with_name(f".{out.name}.{OPUSTOOLS}")
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(parents=True)
    try:
        with slot(OPUSTOOLS, downloads.per_host, downloads.slots):
            printed = _get(location, folder, downloads.stall)
        files = sorted(folder.rglob("*.zip"))
        if len(files) != 1:
            raise EmsError(
                f"{location}: OpusTools brought {len(files)} files instead of one ({printed}); "
                "check the network, the corpus, its version and the pair"
            )
        yield files[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _get(location: str, folder: Path, stall: float) -> str:
    """Let OpusTools download into `folder`; return the last line that it printed."""
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
    except (Exception, SystemExit) as error:  # a library that lets anything through
        raise EmsError(
            f"{location}: OpusTools failed ({type(error).__name__}: {error}); check the network, "
            "or set `sources` in config.yaml to a host or a directory"
        ) from None
    finally:
        socket.setdefaulttimeout(timeout)
    lines = [line.strip() for line in printed.getvalue().replace("\r", "\n").split("\n")]
    last = next((line for line in reversed(lines) if line), "it printed nothing")
    log.info("OpusTools: %s", last)
    return last


def opus_get() -> type:
    """Return the downloader of the package. Raises `EmsError` if the package is absent."""
    try:
        from opustools import OpusGet
    except ImportError as error:
        raise EmsError(
            f"the source {OPUSTOOLS!r} needs the package opustools, which is not installed "
            f"({error}): pip install opustools, or set `sources` to a host or a directory"
        ) from None
    return OpusGet
