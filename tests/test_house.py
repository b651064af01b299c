"""Laws of the source: fourteen rooms, imports that only go down, and a few things never done."""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

FILES = sorted((ROOT / "ems").rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]
CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
ROOMS = CONTRACT["contracts"][0]["layers"]
NEVER_IMPORTED = {"snakemake", "pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
NEVER_CALLED = {"torch.load", "torch.save", "eval", "exec", "yaml.unsafe_load", "yaml.full_load"}
CHECKPOINT = "ems/model/released.py"  # the authors' checkpoint, which a user converts once


def imports(text):
    """The modules that a source names; relative ones with dots."""
    modules = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append("." * node.level + (node.module or ""))
    return modules


def forbidden(text):
    """What a source does that ems never does."""
    names = [name for name in imports(text) if name.split(".")[0] in {"", *NEVER_IMPORTED}]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            names.append("bare except")
        if isinstance(node, ast.Call):
            words = {word.arg: ast.unparse(word.value) for word in node.keywords}
            only_weights = words.get("weights_only") == "True"
            if ast.unparse(node.func) in NEVER_CALLED and not only_weights:
                names.append(ast.unparse(node.func))
            names += [word for word in words if word == "allow_pickle"]
    return names


def lint(folder):
    """What import-linter says of the package in a folder, and its exit status."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode


def test_ems_has_fourteen_rooms_and_nothing_else_at_its_top():
    top = {path.name for path in (ROOT / "ems").iterdir() if path.name != "__pycache__"}
    assert top == {*ROOMS, "__init__.py", "__main__.py"}
    assert len(ROOMS) == 14


def test_a_room_uses_only_rooms_above_it():
    output, status = lint(ROOT)
    assert status == 0, output


def test_an_import_upwards_is_seen(tmp_path):
    shutil.copytree(ROOT / "ems", tmp_path / "ems", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with open(tmp_path / "ems/text/clean.py", "a") as file:
        file.write("\n\ndef late():\n    from ems.train import step\n")
    output, status = lint(tmp_path)
    assert status == 1
    assert "ems.text.clean -> ems.train" in output


def test_no_import_is_excepted():
    """A plug-in is found by its name, so that no room imports one."""
    assert [contract.get("ignore_imports") for contract in CONTRACT["contracts"]] == [None]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_opens_with_what_it_does_and_does_nothing_forbidden(name):
    """No import is relative: the hash of a stage follows absolute ones."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert forbidden(text) == []
    assert ast.get_docstring(ast.parse(text))


FORBIDDEN = {  # a source -> what ems never does in it
    "from snakemake.utils import x\nimport pickle": ["snakemake.utils", "pickle"],
    "from . import x\nfrom .y import z": [".", ".y"],
    "try:\n    f()\nexcept:\n    pass\n": ["bare except"],
    "import torch\ntorch.load('x')": ["torch.load"],
    "import torch\ntorch.load('x', weights_only=False)": ["torch.load"],
    "import torch\ntorch.load('x', weights_only=True)": [],
    "np.load('x', allow_pickle=True)": ["allow_pickle"],
}


def test_the_checks_of_this_file_see_what_they_look_for():
    assert {text: forbidden(text) for text in FORBIDDEN} == FORBIDDEN
    loads = [name for name in NAMES if "torch.load(" in (ROOT / name).read_text(encoding="utf-8")]
    assert loads == [CHECKPOINT]
    assert len(FILES) > 40
