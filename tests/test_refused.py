"""Bad input: tests/refused/ lists what a user does, the error, and the files that must survive.

Each case is one entry of a YAML file:

    a missing text:                      # the name of the case
      files: {v.npy: old}                # written first: text, or {base64: ...}, {gzip: ...}
      edit: {tiny: [width: 32, widht: 32]}  # replaced once in configs/tiny.yaml
      run: encode --model {model} --source gone.txt --out v.npy
      says: gone.txt ... no such file    # the words of the error, in this order
      status: 1                          # 1 is the default; 2 is wrong usage

The law of all cases: the command exits with that status and one line of error without a traceback,
the files written first are unchanged, and nothing new is left (`leaves` lists exceptions).
"""

import base64
import gzip
import shlex

import pytest
import yaml
from conftest import ROOT
from made.cli import Cli
from made.models import write_model

CASES = {
    f"{path.stem}: {name}": case
    for path in sorted((ROOT / "tests" / "refused").glob("*.yaml"))
    for name, case in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}
TEXT = [f"{word} lo mi ne ru so" for word in ("ka", "ti", "va", "sol", "nel", "mar", "tar", "kir")]
PACK = {"base64": base64.b64decode, "gzip": lambda text: gzip.compress(text.encode(), mtime=0)}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """What cases may name in braces."""
    folder = tmp_path_factory.mktemp("refused")
    return {"model": write_model(folder / "model", ["de", "en"], TEXT * 4, pieces=40)}


def snapshot(folder):
    """The content of every file; None for a folder."""
    paths = sorted(path for path in folder.rglob("*") if "logs" not in path.parts)
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in paths
    }


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line_and_changes_no_file(name, places, tmp_path):
    case = CASES[name]
    ems = Cli(tmp_path)
    for file, content in case.get("files", {}).items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            [(kind, text)] = content.items()
            path.write_bytes(PACK[kind](text))
        else:
            path.write_text(content, encoding="utf-8")
    for experiment, (old, new) in case.get("edit", {}).items():
        path = tmp_path / "configs" / f"{experiment}.yaml"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new), encoding="utf-8")
    before = snapshot(tmp_path)
    words = shlex.split(case["run"].format(**places))
    if case.get("status", 1) == 1:
        message = ems.error(*words)
    else:
        message = ems.run(*words, expect=case["status"])[1]
    position = 0
    for part in case["says"].split(" ... "):
        assert part in message[position:], message
        position = message.index(part, position) + len(part)
    after = snapshot(tmp_path)
    assert {file: after.get(file) for file in before} == before
    assert after.keys() - before.keys() <= set(case.get("leaves", ()))
