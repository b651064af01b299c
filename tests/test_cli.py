"""Laws of the command line: an error is one line and exit status 1, and the log file tells the
story."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT, needs
from made.cli import Cli
from made.corpora import moses_of

from ems import __version__
from ems.commands import COMMANDS
from ems.commands.cli import FEW_SPINS, _set_up_log, log
from ems.commands.flags import Mark, flags_of, parse
from ems.commands.help import example
from ems.text.evalkeys import write_keys

RULES = sorted((ROOT / "rules").glob("*.smk"))
PAIRS = [("Hallo Welt", "Hello world"), ("Guten Tag.", "Good day."), ("Der Test", "The test")]
RELEASE = "--corpus Demo --version v1"


@pytest.fixture
def ems(tmp_path):
    return Cli(tmp_path)


@pytest.fixture
def archive(tmp_path):
    return moses_of(tmp_path / "mirror/Demo/v1/moses/de-en.txt.zip", PAIRS, corpus="Demo")


def test_a_flag_of_several_values_may_be_typed_several_times():
    for line in ("check --profile a b", "check --profile a --profile b") * 2:
        assert ["a", "b"] in parse(COMMANDS, line.split())[1].values()


def test_a_stage_refuses_settings_that_changed_since_it_was_planned(ems):
    moses_of(ems.folder / "data/opus/Demo/v1/moses/de-en.txt.zip", PAIRS, corpus="Demo")
    out = ems.folder / "text/clean/Demo/v1/de-en.tsv"
    write_keys({"gutentag": ["tatoeba/de"]}, ems.folder / "keys.tsv")
    job = f"prepare --experiment tiny {RELEASE} --pair de-en --keys keys.tsv --data data".split()
    job += ["--text", "text", "--out", "receipt.json"]
    lines = ems(*job)
    hashed = next(line for line in lines if "settings of stage" in line).split()[-1]
    assert "decontaminate Demo de-en: 3/3 pairs" in "\n".join(lines)
    assert out.read_text() == "Hallo Welt\tHello world\t1\nDer Test\tThe test\t3\n"
    job += ["--expect", hashed]
    ems(*job)
    tiny = ems.folder / "configs" / "tiny.yaml"
    text = tiny.read_text()
    tiny.write_text(text.replace("steps: 60", "steps: 61"))  # another stage's setting
    ems(*job)
    out.unlink()
    tiny.write_text(text.replace("max_pairs: 1500", "max_pairs: 2"))
    message = ems.error(*job)
    assert f"configs/tiny.yaml: stage prepare was planned with settings {hashed}" in message
    assert not out.exists()


def test_check_says_what_is_going_to_run_and_what_filters_lack(ems):
    tiny = ems.folder / "configs" / "tiny.yaml"
    text = tiny.read_text().replace("ja]\n", "ja, {code: xq}]\n", 1)
    tiny.write_text(text.replace("clean: {}", "clean: {language: {}}"))
    log = "\n".join(ems("check", "--experiment", "tiny"))
    assert "experiment tiny is fine: 5 languages, train Demo/v1, validation DemoDev/v1" in log
    assert "clean.language keeps all sides in xq: not known" in log


# --- help


def test_the_help_groups_the_commands_and_hides_the_stages(ems):
    short, long = ems.run()[0], ems.run("--help", "--all")[0]
    assert ems.run("-h")[0] == ems.run("--help")[0] == short
    listed = re.findall(r"^  ([a-z-]+) +[A-Z].*\.$", long, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    called = set(re.findall(r"(?:\"|exec )ems ([a-z-]+) ", "".join(p.read_text() for p in RULES)))
    hidden = [name for name in listed if f"\n  {name} " not in short]
    assert called - set(hidden) == {"align", "export", "report", "table"}  # of use by hand too
    assert max(map(len, long.splitlines())) <= 80
    assert ems.run("--version")[0].startswith(f"ems {__version__}, ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_one_example_that_its_flags_allow(name):
    words = shlex.split(example(name).replace("\\\n", ""))
    assert words[:2] == ["ems", name]
    found, values = parse(COMMANDS, words[1:])
    assert found == name
    assert any(value for value in values.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_explains_every_flag_in_a_noun_phrase(ems, name):
    text, _ = ems.run(name, "--help")
    for flag in flags_of(COMMANDS[name]):
        shown = flag.note(str) or ""
        if not {Mark.HIDDEN, Mark.POSITIONAL} & {*flag.notes}:
            assert shown[:1].isalpha(), flag
        assert not shown.endswith("."), flag
        assert "".join(shown.split()) in "".join(text.split()), flag


# --- the log file


def test_the_log_file_holds_the_command_its_result_and_its_cost(ems, archive):
    log, mirror = ems.folder / "deep" / "job.log", archive.parents[3]
    job = f"fetch --source {mirror} {RELEASE} --pair de-en --out x.zip --log deep/job.log".split()
    ems(*job)
    lines = ems(*job)  # the log is that of the last run only
    assert log.read_text(encoding="utf-8").splitlines() == lines
    assert f"ems fetch --source {mirror}" in lines[0]
    assert " s CPU, " in lines[-1]


def test_an_unforeseen_error_is_in_the_log_with_where_it_happened(ems, monkeypatch):
    def fail(*_):
        raise ValueError("of a library")

    monkeypatch.setattr("ems.shards.index.write_index", fail)
    ems("index", "--training", ".", "--out", "out", "--log", "job.log", expect=1)
    text = (ems.folder / "job.log").read_text(encoding="utf-8")
    assert re.search(r"error: a fault of EMS at ems/commands/text.py:\d+ \(ValueError: of a", text)
    assert "Traceback" not in text


def test_the_command_line_loads_no_heavy_library_before_a_stage_needs_it():
    heavy = "torch sentencepiece sacremoses jieba pandas matplotlib sklearn numpy jsonschema"
    heavy = {*f"{heavy} pydantic yaml ems.config ems.benchmarks ems.tables.registry".split()}
    program = f"import sys, ems.commands.cli; print({heavy} & {{*sys.modules}})"
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, cwd=ROOT, text=True).strip() == "set()"


SPINS = {"A=b": FEW_SPINS, "GOMP_SPINCOUNT=7": "7", "OMP_WAIT_POLICY=PASSIVE": "0"}


@pytest.mark.parametrize("variable", SPINS)
def test_threads_that_wait_soon_sleep_unless_the_user_says_otherwise(variable):
    """The setting is read back from PyTorch's own OpenMP library."""
    (library,) = Path(find_spec("torch").origin).parent.glob("lib/libgomp*")
    code = "from ems.commands.cli import main; main(['verify']); import ctypes; "
    command = [sys.executable, "-c", f"{code}ctypes.CDLL({str(library)!r})"]
    environment = {**os.environ, "OMP_DISPLAY_ENV": "verbose"}
    environment.pop("OMP_WAIT_POLICY")
    environment |= dict([variable.split("=")])
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert f"GOMP_SPINCOUNT = '{SPINS[variable]}'" in run.stderr


def test_a_log_that_cannot_be_written_is_said_once_in_one_line_and_the_job_goes_on(tmp_path, capfd):
    (tmp_path / "full.log").symlink_to("/dev/full")  # the kernel's own disk-full
    _set_up_log(tmp_path / "full.log")
    for word in ("one", "two", "three"):
        log.info(word)
    lines = capfd.readouterr().err.splitlines()
    words = [line.partition(" ")[2] for line in lines if "full.log" not in line]
    assert words == ["one", "two", "three"]
    (said,) = [line for line in lines if "full.log" in line]
    assert "No space left on device" in said


def test_onnxruntime_neither_reports_what_a_command_does_nor_leaves_a_file(tmp_path):
    needs(find_spec("onnxruntime"), "onnxruntime is not installed")
    code = "from ems.commands.cli import main; main(['verify']); import onnxruntime"
    own = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=own, check=True, capture_output=True)
    assert list(tmp_path.rglob("*")) == []
