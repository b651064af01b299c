"""Bad input: tests/refused/ lists what a user does, the error, and the files that must survive.

Each case is one entry of a YAML file, and needs `says` and one of `run`, `python` and `shell`:

    a missing text:                       # the name of the case
      files: {v.npy: old}                 # written first: text, {copy: PLACE}, or one of KINDS
      edit:                               # then changed: a text that is there once, dotted keys,
        configs/tiny.yaml: {model.width: 33, train.steps: GONE}   # or GONE: the file is deleted
        a.txt: [old, new]
      cut: {v.npy: 1}                     # bytes taken off the end of a file
      tensors: {m/model.safetensors: {tokens.weight: .nan}}   # see change_tensors in made/models.py
      mend: [m]                           # folders whose checksums fit again
      first: [encode --model ...]         # commands that must succeed before
      run: encode --model {model} --source gone.txt --out v.npy   # `ems ...` in this process
      python: from ems.use.encoder import Encoder; Encoder("gone")   # raises EmsError
      shell: ems encode ... | head        # bash in a process of its own, only where a pipe matters
      stdin: text                         # of `run`
      says: gone.txt ... no such file     # the words of the error, in this order
      status: 1                           # 1 is the default; 2 is wrong usage
      leaves: [v.npy.index]               # what may be new
      needs: onnxruntime                  # skipped without this package

Braces name places (made/places.py), made once if a case names them; `{copy: model}` is a copy to
spoil. `python` has them as variables.

The law of all cases: the command exits with that status and one line of error without a traceback,
the files written first are unchanged, and nothing new is left.
"""

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import ChainMap
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from conftest import ROOT, needs
from made.cli import Cli
from made.experiments import GONE, edited, one_line
from made.models import change_tensors, mend_sums
from made.places import KINDS, Places

CASES = {
    f"{path.stem}: {name}": case
    for path in sorted((ROOT / "tests" / "refused").glob("*.yaml"))
    for name, case in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return Places(tmp_path_factory.mktemp("refused"))


def prepare(folder, case, places):
    """Write the files of a case, and spoil them."""
    for name, content in case.get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        [(kind, value)] = content.items() if isinstance(content, dict) else [("", content)]
        if kind == "copy":
            source = places[value.split("/")[0]].parent / value
            (shutil.copytree if source.is_dir() else shutil.copy)(source, path)
        else:
            path.write_bytes(KINDS[kind](value) if kind else value.encode())
    for name, change in case.get("edit", {}).items():
        path = folder / name
        if change == "GONE":
            path.unlink()
            continue
        text = path.read_text(encoding="utf-8")
        if isinstance(change, list):
            assert text.count(change[0]) == 1, f"{name} has {change[0]!r} {text.count(change[0])} x"
            text = text.replace(*change)
        else:
            value = yaml.safe_load(text)
            for key, new in change.items():
                value = edited(value, key, GONE if new == "GONE" else new)
            text = json.dumps(value)  # is YAML too
        path.write_text(text, encoding="utf-8")
    for name, changes in case.get("tensors", {}).items():
        change_tensors(folder / name, changes)
    for name in case.get("mend", ()):
        mend_sums(folder / name)
    for name, count in case.get("cut", {}).items():
        os.truncate(folder / name, (folder / name).stat().st_size - count)


def message_of(ems, case, places, monkeypatch):
    """Do what the case says; the message of its error."""
    status = case.get("status", 1)
    if "python" in case:
        with chdir(ems.folder):
            return one_line(exec, case["python"], {}, ChainMap({"Path": Path}, places))
    if "shell" in case:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = ["bash", "-c", case["shell"].format_map(places)]
        environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=ems.folder, env=environment, capture_output=True)
        assert done.returncode == status
        return done.stderr.decode()
    standard = io.TextIOWrapper(io.BytesIO(case.get("stdin", "").encode()))
    monkeypatch.setattr(sys, "stdin", standard)
    words = shlex.split(case["run"].format_map(places))
    return ems.error(*words) if status == 1 else ems.run(*words, expect=status)[1]


def snapshot(folder):
    """The content of every file; None for a folder."""
    paths = sorted(path for path in folder.rglob("*") if "logs" not in path.parts)
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in paths}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line_and_changes_no_file(name, places, tmp_path, monkeypatch):
    case, ems = CASES[name], Cli(tmp_path)
    if package := case.get("needs"):
        needs(find_spec(package), f"{package} is not installed")
    prepare(tmp_path, case, places)
    for command in case.get("first", ()):
        ems.run(*shlex.split(command.format_map(places)))
    before = snapshot(tmp_path)
    message, position = message_of(ems, case, places, monkeypatch), 0
    assert "Traceback" not in message
    assert "Exception ignored" not in message
    for part in case["says"].split(" ... "):
        assert part in message[position:], message
        position = message.index(part, position) + len(part)
    after = snapshot(tmp_path)
    assert {file: after.get(file) for file in before} == before
    assert after.keys() - before.keys() <= set(case.get("leaves", ()))
