"""Laws of the light installation: a static model is used with three packages and no other one."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from zipfile import ZipFile

import numpy as np
import pytest
from conftest import ROOT
from made.bare import bare_python, link, site_of
from made.models import write_model
from made.servers import Served
from packaging.requirements import Requirement

from ems.model.static import load_encoder
from ems.text.normalise import without_format

pytestmark = pytest.mark.slow
LIGHT = {"numpy", "safetensors", "sentencepiece"}
SERVE = {"starlette", "uvicorn"}
HEAVY = ["torch", "pydantic", "scipy", "regex", "ruamel", "yaml", "pandas", "jsonschema"]
HEAVY += ["requests", "psutil", "snakemake"]
OURS = ["ems.config.experiment", "ems.train", "ems.benchmarks"]
LINES = ["Kalo mi\u00ad ne.", "Ne ru so.", "\u200bmi"]
SIZES = {"layers": 0, "table": 16, "ngrams": 64}
TEXT = "".join(f"{line}\n" for line in LINES)
PROGRAM = f"""
import sys
import numpy as np
from ems import Encoder, mine, score
encoder = Encoder(sys.argv[1])
lines = {LINES}
np.save(sys.argv[2], encoder.encode(lines))
assert abs(score(encoder, lines, lines)[1] - 1) < 1e-5
assert len(mine(encoder, lines, lines).score)
names = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(names & set({HEAVY})), sorted(set(sys.modules) & set({OURS})))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A static model that drops format characters, which needs tables of Unicode."""
    folder = tmp_path_factory.mktemp("light") / "model"
    write_model(folder, ["de", "en"], LINES * 30, 30, sizes=SIZES)
    about = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(about | {"format_characters": "drop"}))
    return folder


def test_the_light_package_asks_for_three_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {Requirement(each).name for each in project["dependencies"]} == LIGHT
    pipeline = {Requirement(each).name for each in project["optional-dependencies"]["pipeline"]}
    assert {"regex", "snakemake", "dvc", "pydantic", "ems-embeddings"} <= pipeline


@pytest.mark.parametrize("compiler", ["", "false"])
def test_a_wheel_has_all_files_and_is_built_without_a_compiler_too(tmp_path, compiler):
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "ems", tmp_path / "ems", ignore=ignored)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "."]
    environment = os.environ | ({"CC": compiler} if compiler else {})
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    (wheel,) = tmp_path.glob("ems_embeddings-*.whl")
    names = {name for name in ZipFile(wheel).namelist() if name.startswith("ems/")}
    compiled = {name for name in names if name.startswith("ems/model/_static.")}
    assert len(compiled) == (not compiler)
    files = [path for path in (tmp_path / "ems").rglob("*") if path.suffix not in (".so", ".md")]
    assert names - compiled == {str(path.relative_to(tmp_path)) for path in files if path.is_file()}


COMMANDS = {
    "encode": "--source a.txt --out a.npy",
    "score": "--source pairs.tsv --out scores.txt",
    "score by margin": "--source pairs.tsv --out margins.txt --margin ratio",
    "mine": "--source a.txt --target a.txt --out mined.tsv",
    "search": "--index a.txt mi",
    "check-model": "",
}
RUN = f"""
import sys
from ems.commands.cli import main
assert main(sys.argv[1:]) == 0
print(sorted({{name.partition(".")[0] for name in sys.modules}} & set({HEAVY})))
"""


def written(folder):
    (folder / "a.txt").write_text(TEXT)
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES))
    return folder


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_using_a_static_model_imports_nothing_of_the_pipeline(model, tmp_path, command):
    """In this environment, where all packages are."""
    words = [PROGRAM, model, "out.npy"]
    if command:
        words = [RUN, command.split()[0], "--model", model, *COMMANDS[command].split()]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", *words],
        cwd=written(tmp_path),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == ("[]" if command else "[] []"), done.stderr


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The python of a new environment with the light package as `pip install .` would have it."""
    folder = tmp_path_factory.mktemp("fresh")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "ems", source / "ems", ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_wheel; build_wheel('wheel')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    python = bare_python(folder / "env", LIGHT)
    shutil.unpack_archive(next((source / "wheel").glob("*.whl")), site_of(python), "zip")
    return python


def test_a_fresh_environment_of_the_light_package_runs_the_program(fresh, model, tmp_path):
    def run(*words, status=0):
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = subprocess.run(
            [fresh, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        return done

    absent = f"from importlib.util import find_spec as f; print([n for n in {HEAVY} if f(n)])"
    assert run("-c", absent).stdout == "[]\n"
    assert run("-c", PROGRAM, model, "out.npy").stdout == "[] []\n"
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), load_encoder(model).encode(LINES))
    layers = write_model(tmp_path / "layers", ["de", "en"], LINES * 30, 30)
    written(tmp_path)
    encode = ("-m", "ems", "encode", "--model", layers, "--source", "a.txt", "--out", "x.npy")
    error = run(*encode, status=1).stderr.splitlines()[-1]
    assert "needs torch; in the folder of this project: pip install '.[layers]'" in error
    error = run("-m", "ems", "check", status=1).stderr.splitlines()[-1]
    assert "is not installed; this command needs the whole pipeline: pip install" in error
    encode = ("-m", "ems", "encode", "--model", model, "--source", "no.txt", "--out", "x.npy")
    assert "no.txt: no such file" in run(*encode, status=1).stderr.splitlines()[-1]


def test_a_fresh_environment_serves_the_page_with_two_more_packages(fresh, model, tmp_path):
    command = [fresh, "-m", "ems", "serve", "--model", model, "--port", "0"]
    error = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stderr
    assert "ems serve needs uvicorn; in the folder of this project: pip install '.[serve]'" in error
    assert "Traceback" not in error
    link(site_of(fresh), SERVE)
    (tmp_path / "lines.txt").write_text(TEXT)
    words = ("--model", model, "--index", "lines.txt")
    with Served(tmp_path, *words, python=fresh, env={"PATH": os.environ["PATH"]}) as server:
        assert server.ask("GET", "/")[2].startswith(b"<!doctype html>")
        found = server.json("GET", "/search?k=1&q=Ne%20ru%20so.")[1]["results"]
        assert [hit["line"] for hit in found] == ["Ne ru so."]


def test_the_readme_uses_an_exported_folder_with_the_light_package(fresh, model, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Use the model\n")[2].partition("\n## ")[0]
    place = tmp_path / "results/demo/exports/ems"  # which the section makes first
    place.parent.mkdir(parents=True)
    place.symlink_to(model)
    for name in ("lines.txt", "b.txt"):
        (written(tmp_path) / name).write_text(TEXT)
    commands = re.findall("^    ems ((?:encode|score|mine|search) .*)$", section, re.M)
    blocks = re.findall("```python\n(from ems .*?)```", section, re.S)
    assert (len(commands), len(blocks)) == (4, 1)
    lines = [shlex.join([str(fresh), "-c", block]) for block in blocks]
    lines += [f"{shlex.quote(str(fresh))} -m ems {command}" for command in commands]
    bash = ["bash", "-e", "-c", "\n".join(lines)]
    shown = subprocess.run(bash, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    expected = load_encoder(model).encode(LINES)
    np.testing.assert_array_equal(np.load(tmp_path / "lines.npy"), expected)
    assert (tmp_path / "scores.txt").read_text() == "1.000000\n" * len(LINES)
    assert (tmp_path / "mined.tsv").read_text().count("\n") >= 3
    assert "\t2\tNe ru so.\n" in shown


def test_format_characters_are_those_of_unicode():
    regex = pytest.importorskip("regex")
    joins = (
        r"\p{Arabic}\p{Syriac}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}"
        r"\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}\p{Mongolian}"
        r"\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f"
    )
    visible = r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    plain = regex.compile(
        rf"(?V1)[\p{{Cf}}--[{visible}\u200c\u200d\u180e\ufeff]]|(?<![{joins}])[\u200c\u200d\u180e]"
    )
    points = [chr(at) for at in range(0x110000) if not 0xD800 <= at <= 0xDFFF]
    text = "".join(f"{point}\u200da\u200c{point}b" for point in points)
    assert without_format(text) == plain.sub("", text)
