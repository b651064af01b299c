"""A python that has MTEB and a model of random weights, for the tests of both MTEB scripts."""

import subprocess
import sys
import tomllib
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path

from conftest import ROOT, made_once, needs
from made.models import write_model

from ems.commands.cli import main

SIZES = {"layers": 1, "width": 32, "heads": 2, "feed_forward": 48, "max_tokens": 40}


def make_environment(folder):
    """An environment that has this one's packages and those of the extra `mteb`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    site = next((folder / "env/lib").glob("python*")) / "site-packages"
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"{path}\n" for path in [str(ROOT), *ours]))
    install = [folder / "env/bin/python", "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, *project["optional-dependencies"]["mteb"]], check=False)


def mteb_python(tmp_path_factory):
    """A python that has MTEB: this one, or one of an environment made for it."""
    if find_spec("mteb"):
        return Path(sys.executable)
    python = made_once(tmp_path_factory, "mteb", make_environment) / "env/bin/python"
    done = subprocess.run([python, "-c", "import mteb"], capture_output=True)
    needs(done.returncode == 0, "mteb (pip install '.[mteb]')")
    return python


def call(*words):
    with chdir(ROOT):
        assert main([str(word) for word in words]) == 0


def export_of(folder, languages, text, pieces):
    """A model of random weights: (as we have it, as it is exported)."""
    model, out = folder / "models/ems", folder / "out"
    write_model(model, languages, text, pieces, sizes=SIZES)
    call("export", "--model", model, "--out", out)
    return model, out
