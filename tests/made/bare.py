"""A Python with some packages alone, as on a borrowed machine, and wheels of installed ones.

Its packages are links to the installed ones. A connection to any network is refused and leaves a
file behind, also if the program goes on.
"""

import subprocess
import sys
import zipfile
from collections.abc import Container, Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

CONNECTED = "connected"
SITECUSTOMIZE = """
import socket
from pathlib import Path

class Blocked(socket.socket):
    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            Path({file!r}).touch()
            raise OSError(f"no network: {{address}}")
        return super().connect(address)

socket.socket = Blocked
"""


def bare_python(folder: Path, packages: Iterable[str], without: Container[str] = ()) -> Path:
    """Make an environment with these packages and their requirements; return its Python."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    site = site_of(folder / "bin/python")
    link(site, packages, without)
    text = SITECUSTOMIZE.format(file=str(folder / CONNECTED))
    (site / "sitecustomize.py").write_text(text)
    return folder / "bin/python"


def site_of(python: Path) -> Path:
    return next(python.parents[1].glob("lib/python3.*/site-packages"))


def link(site: Path, packages: Iterable[str], without: Container[str] = ()) -> None:
    for found in needed(packages, without).values():
        for top in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(found.locate_file(top))


def needed(packages: Iterable[str], without: Container[str]) -> dict[str, Distribution]:
    found, left = {}, list(packages)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found or name in without:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # of another platform, or an extra
            continue
        requirements = map(Requirement, found[name].requires or [])
        left += [r.name for r in requirements if not r.marker or r.marker.evaluate({"extra": ""})]
    return found


def write_wheel(folder: Path, package: str) -> Path:
    """Pack an installed package as the wheel that it came from."""
    found = distribution(package)
    tags = [line[5:] for line in found.read_text("WHEEL").splitlines() if line.startswith("Tag: ")]
    python, abi = tags[0].split("-")[:2]
    systems = ".".join(tag.split("-")[2] for tag in tags)
    name = package.replace("-", "_")
    path = folder / f"{name}-{found.version}-{python}-{abi}-{systems}.whl"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for file in found.files:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                archive.write(file.locate(), str(file))
    return path
