"""The Moses zips of OPUS through the OpusTools package, an optional second way to them.

Notable choices:
- OpusTools asks the OPUS API for the address and downloads by itself; its host cannot be set. What
  it brings passes the same checks and the same lock as every other file;
- it runs in a folder of its own, since it names its files itself (`<corpus>_<version>_moses_...`);
- it prints its failures and returns, or ends in a traceback: what it printed is kept for the error,
  and only a file that is there counts as success;
- it never gives up on a silent server, so the sockets get a timeout while it runs.
"""

import contextlib
import io
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ems.config import OPUSTOOLS
from ems.corpora.download import DOWNLOADS, Downloads
from ems.corpora.slots import default_folder, slot
from ems.errors import EmsError
from ems.progress import log


def opustools_location(corpus: str, version: str, pair: str) -> str:
    """How the lock and the errors name such a file."""
    return f"{OPUSTOOLS}:{corpus}/{version}/moses/{pair}.txt.zip"


@contextmanager
def moses_by_opustools(
    corpus: str, version: str, pair: str, out: Path, how: Downloads = DOWNLOADS
) -> Iterator[Path]:
    """Yield the Moses zip of a pair in a temporary folder beside `out`.

    Raises `EmsError` when the package is absent, or brings nothing.
    """
    folder = out.with_name(f".{out.name}.{OPUSTOOLS}")
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(parents=True)
    try:
        with slot(OPUSTOOLS, how.per_host, how.slots or default_folder()):
            printed = _get(corpus, version, pair, folder, how.stall)
        found = sorted(folder.rglob("*.zip"))
        if len(found) != 1:
            where = opustools_location(corpus, version, pair)
            raise EmsError(
                f"{where}: OpusTools brought {len(found)} files instead of one ({printed}); check "
                "the network, the corpus, its version and the pair"
            )
        yield found[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _get(corpus: str, version: str, pair: str, folder: Path, stall: float) -> str:
    """Let OpusTools download into `folder`; return the last line that it printed."""
    get = opus_get()
    first, second = pair.split("-")
    printed, before = io.StringIO(), socket.getdefaulttimeout()
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
    except (Exception, SystemExit) as error:  # of a library that lets anything through
        where = opustools_location(corpus, version, pair)
        raise EmsError(
            f"{where}: OpusTools failed ({type(error).__name__}: {error}); check the network, or "
            "set `sources` in config.yaml to a host or a directory"
        ) from None
    finally:
        socket.setdefaulttimeout(before)
    lines = [line.strip() for line in printed.getvalue().replace("\r", "\n").split("\n")]
    told = [line for line in lines if line]
    log.info("OpusTools: %s", told[-1] if told else "nothing printed")
    return told[-1] if told else "it printed nothing"


def opus_get() -> type:
    """The downloader of the package. Raises `EmsError` that names the package when it is absent."""
    try:
        from opustools import OpusGet
    except ImportError as error:
        raise EmsError(
            f"the source {OPUSTOOLS!r} needs the package opustools, which is not installed "
            f"({error}): pip install opustools, or set `sources` to a host or a directory"
        ) from None
    return OpusGet
