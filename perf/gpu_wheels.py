"""Python packages for a machine without network: which ones gpu.py needs, and a folder of wheels.

Imports only Python's standard library. A test runs every part with these packages alone, which
keeps the list complete.
"""

import platform
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "envs/requirements.lock"
MEBIBYTE = 1 << 20
GLIBC = (5, 12, 17, 24, 27, 28, 31, 34, 35)  # manylinux_2_N: pip takes each by its exact name
EVERY, LAWS, PEER = "every part", "laws", "the comparison with sentence-transformers"


@dataclass(frozen=True)
class Need:
    """A module, its package, and the part that imports it. `rare` packages are usually missing on
    a machine for deep learning.
    """

    module: str
    package: str
    use: str = EVERY
    rare: bool = False


NEEDS = (
    Need("torch", "torch"),
    Need("numpy", "numpy"),
    Need("yaml", "pyyaml"),
    Need("psutil", "psutil"),
    Need("regex", "regex"),
    Need("safetensors", "safetensors"),
    Need("sentencepiece", "sentencepiece"),
    Need("typing_extensions", "typing-extensions"),
    Need("annotated_types", "annotated-types", rare=True),
    Need("anyascii", "anyascii", rare=True),
    Need("langcodes", "langcodes", rare=True),
    Need("pydantic", "pydantic", rare=True),
    Need("pydantic_core", "pydantic-core", rare=True),
    Need("typing_inspection", "typing-inspection", rare=True),
    Need("ruamel", "ruamel-yaml", rare=True),
    Need("pytest", "pytest", LAWS),
    Need("sentence_transformers", "sentence-transformers", PEER),
)


def locked(package: str) -> str:
    """Return `package==version` of the lock; the bare name if versions differ by Python."""
    pattern = rf"^{re.escape(package)}==\S+$"
    found = re.search(pattern, LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return found[0] if found else package


def missing() -> list[Need]:
    """Return the needed modules that this Python cannot find."""
    return [need for need in NEEDS if find_spec(need.module) is None]


def explained(need: Need) -> str:
    """Describe a missing module in one line."""
    return f"missing: {need.module}, for {need.use}: {locked(need.package)}"


def collecting(folder: Path) -> str:
    """Return the command that downloads the wheels for this Python."""
    version = "{}.{}".format(*sys.version_info)
    return f"python perf/gpu.py --collect {folder} --python {version}"


def advice() -> str:
    """Explain how to bring missing packages to a machine without network."""
    return (
        f"where there is a network: {collecting(Path('wheels'))} (for further packages: --also "
        "NAME); then here: --wheels wheels"
    )


# --- a folder of wheels


def collect(folder: Path, python: str, machine: str, also: list[str]) -> None:
    """Download the wheels of `rare` packages and of the packages `also`, for Linux on `machine`.

    Versions come from the lock. Exits with pip's error if there is no such wheel.
    """
    packages = [need.package for need in NEEDS if need.rare]
    names = list(dict.fromkeys([*packages, *also]))
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC]
    platforms += [f"manylinux2014_{machine}", f"linux_{machine}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    command += [f"--platform={platform}" for platform in platforms]
    command += [f"--dest={folder}", *map(locked, names)]
    if subprocess.run(command).returncode:
        sys.exit(f"{folder}: pip could not download {', '.join(map(locked, names))}; see above")
    wheels = sorted(folder.glob("*.whl"))
    size = sum(path.stat().st_size for path in wheels) / MEBIBYTE
    print(f"{folder}: {len(wheels)} wheels for Python {python}, {size:.1f} MiB")
    for path in wheels:
        print(f"  {path.name}")


def unpack(folder: Path, out: Path) -> list[str]:
    """Unpack the wheels of a folder that fit this Python into `out`; return their names.

    Exits if the folder has no wheels, two of one package, or a damaged one.
    """
    wheels = sorted(folder.glob("*.whl"))
    fitting = [path for path in wheels if fits(path.name)]
    version = "{}.{}".format(*sys.version_info)
    if not fitting:
        others = f"; {wheels[0].name} and others are for another one" if wheels else ""
        sys.exit(
            f"{folder}: no wheels for Python {version} here{others}. Where there is a network: "
            f"{collecting(folder)}"
        )
    packages = [path.name.split("-")[0] for path in fitting]
    if twice := sorted({name for name in packages if packages.count(name) > 1}):
        sys.exit(f"{folder}: two wheels each of {', '.join(twice)}; keep one")
    for path in fitting:
        try:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(out)
        except (zipfile.BadZipFile, EOFError) as error:
            sys.exit(f"{path}: not a whole wheel ({error}); collect it again")
    return [path.name for path in fitting]


def fits(name: str) -> bool:
    """Return whether a wheel runs here, by the tags in its file name (PEP 425, Linux)."""
    *_, pythons, abis, systems = name.removesuffix(".whl").split("-")
    major, minor = sys.version_info[:2]
    own = {f"cp{major}{minor}", f"py{major}{minor}", f"py{major}"}
    older = {f"cp{major}{at}" for at in range(2, minor + 1)} if "abi3" in abis.split(".") else set()
    machine = platform.machine()
    return not (own | older).isdisjoint(pythons.split(".")) and any(
        system == "any" or system.endswith(f"_{machine}") for system in systems.split(".")
    )
