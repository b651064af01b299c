"""Laws of the project: fourteen rooms, imports that only go down, a few things never done; and what
stands around the code: installation, containers, citation, public CI, forms, patches of Snakemake.
"""

import ast
import inspect
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from snakemake.cli import get_argument_parser
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake_executor_plugin_slurm import Executor

import ems

FILES = sorted((ROOT / "ems").rglob("*.py"))
SOURCES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
CONTRACT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
ROOMS = CONTRACT["contracts"][0]["layers"]
NEVER_IMPORTED = {"snakemake", "pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
NEVER_CALLED = {"torch.load", "torch.save", "eval", "exec", "yaml.unsafe_load", "yaml.full_load"}
NEVER_CALLED |= {"json.load"}
PARSERS = {"own.py", "serve.py", "verify.py"}  # of JSON that is no file: a line, a request
CHECKPOINT = "ems/model/released.py"  # the authors' checkpoint, which a user converts once


def imports(text):
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
            types = [ast.unparse(argument) for argument in node.args[1:]]
            if ast.unparse(node.func) == "read_json" and types[:1] in ([], ["Any"]):
                names.append("untyped JSON")
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
    """No import is excepted: a plug-in is found by its name, so that no room imports one."""
    output, status = lint(ROOT)
    assert status == 0, output
    assert [contract.get("ignore_imports") for contract in CONTRACT["contracts"]] == [None]


def test_an_import_upwards_is_seen(tmp_path):
    shutil.copytree(ROOT / "ems", tmp_path / "ems", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with open(tmp_path / "ems/text/clean.py", "a") as file:
        file.write("\n\ndef late():\n    from ems.train import step\n")
    output, status = lint(tmp_path)
    assert status == 1
    assert "ems.text.clean -> ems.train" in output


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_opens_with_what_it_does_and_does_nothing_forbidden(name):
    """No import is relative: the hash of a stage follows absolute ones."""
    assert forbidden(SOURCES[name]) == []
    assert ast.get_docstring(ast.parse(SOURCES[name]))


FORBIDDEN = {  # a source -> what ems never does in it
    "from snakemake.utils import x\nimport pickle": ["snakemake.utils", "pickle"],
    "from . import x\nfrom .y import z": [".", ".y"],
    "try:\n    f()\nexcept:\n    pass\n": ["bare except"],
    "import torch\ntorch.load('x')": ["torch.load"],
    "import torch\ntorch.load('x', weights_only=False)": ["torch.load"],
    "import torch\ntorch.load('x', weights_only=True)": [],
    "np.load('x', allow_pickle=True)": ["allow_pickle"],
    "read_json(path)\nread_json(path, Any)": ["untyped JSON"] * 2,
    "read_json(path, Report, 'x.json')": [],
}


def test_the_checks_of_this_file_see_what_they_look_for():
    assert {text: forbidden(text) for text in FORBIDDEN} == FORBIDDEN
    assert [name for name, text in SOURCES.items() if "torch.load(" in text] == [CHECKPOINT]
    assert {Path(name).name for name, text in SOURCES.items() if "json.loads(" in text} <= PARSERS
    assert sum(text.count(" read_json(") for text in SOURCES.values()) > 20


# --- around the code

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = "envs/requirements.lock"
CONTAINERS = ["envs/Dockerfile", "envs/ems.def"]


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_lock_has_what_each_extra_pins():
    lines = [x for x in (ROOT / LOCK).read_text().splitlines() if not x.startswith("#")]
    locked = {}
    for each in map(Requirement, lines):
        locked.setdefault(each.name.lower(), set()).update(x.version for x in each.specifier)
    assert len(locked) == len({re.sub("[-_.]+", "-", name) for name in locked}) > 150
    apart = re.findall(r"--no-extra (\w+)", (ROOT / "Makefile").read_text())
    extras = {name: e for name, e in PROJECT["optional-dependencies"].items() if name not in apart}
    wanted = [Requirement(text) for extra in extras.values() for text in extra]
    assert {"pipeline", "docs", "export"} <= set(extras)
    wanted += map(Requirement, PROJECT["dependencies"])
    for each in (each for each in wanted if each.name != PROJECT["name"]):  # extras of itself
        name = re.sub("[-_.]+", "-", each.name).lower()
        assert locked.get(name), f"{each.name} is not in {LOCK}: make lock"
        assert any(map(each.specifier.contains, locked[name])), str(each)


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_installs_the_lock_and_then_ems_without_dependencies(name):
    text = (ROOT / name).read_text()
    installs = [words.split() for words in re.findall("pip install (.*)", text)]
    first, second = ([word for word in words if word != "--no-cache-dir"] for words in installs)
    assert first[0] == "-r"
    assert first[1].endswith("requirements.lock")
    assert second[0] == "--no-deps"
    (python,) = set(re.findall("(?i)^from: ?python:([0-9.]+)-|^from python:([0-9.]+)-", text, re.M))
    assert "".join(python) in SpecifierSet(PROJECT["requires-python"])


def test_no_cache_result_or_data_gets_into_a_container():
    def patterns(name, folder=""):
        lines = (ROOT / name).read_text().splitlines()
        kept = (line for line in lines if line and not line.startswith("#"))
        return {folder + line.removeprefix("**/").strip("/") for line in kept}

    left_out = patterns(".dockerignore")
    assert patterns(".gitignore") | patterns(".dvc/.gitignore", ".dvc/") | {".git"} <= left_out
    assert not {"ems", "envs", "configs", "README.md", LOCK} & left_out


def test_the_build_of_pytorch_for_cpus_is_installed_before_the_lock_if_it_is_asked_for():
    def commands(*words):
        make = ["make", "--dry-run", "--what-if=pyproject.toml", "setup", *words]
        return subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    plain, cpu = commands("CPU="), commands("CPU=1")
    assert "torch" not in plain
    assert cpu.index("--torch-backend cpu") < cpu.index(f"-r {LOCK}")
    assert [x for x in cpu.splitlines() if "--torch-backend" not in x] == plain.splitlines()
    assert "://" not in cpu  # the address of the build is uv's to know


def test_the_citation_names_this_version_and_the_papers_that_the_experiments_reproduce():
    citation = read_yaml("CITATION.cff")
    assert {"title", "message", "authors", "type"} <= set(citation)
    values = {key: citation[key] for key in ("cff-version", "version", "license")}
    own = {"version": ems.__version__, "license": PROJECT["license"]}
    assert values == {"cff-version": "1.2.0", **own}
    assert PROJECT["dynamic"] == ["version"]  # which is in ems/__init__.py alone
    papers = [citation["preferred-citation"], *citation["references"]]
    assert [paper["year"] for paper in papers] == [2024, 2021, 2019]
    for paper in papers:
        assert {"type", "title", "authors", "year"} <= set(paper)
        assert all({"family-names", "given-names"} == set(author) for author in paper["authors"])
    assert papers[0]["title"] in " ".join((ROOT / "README.md").read_text().split("\n"))


def test_the_list_of_changes_begins_with_what_is_not_released_or_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search("^## (.*)$", text, re.M)[1]
    assert re.match(rf"Unreleased$|{re.escape(ems.__version__)} - \d{{4}}-\d\d-\d\d$", newest)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall("^### (.*)$", text, re.M)) <= kinds


def test_the_public_ci_runs_what_ours_runs():
    steps = read_yaml(".github/workflows/ci.yml")["jobs"]["all"]["steps"]
    assert ".ci/run" in [step.get("run") for step in steps]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_the_catalogue_of_workflows_finds_what_it_asks_for():
    usage = read_yaml(".snakemake-workflow-catalog.yml")["usage"]
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    assert any(usage["software-stack-deployment"].values())
    include = re.findall('^include: "(.*)"$', (ROOT / "workflow/Snakefile").read_text(), re.M)
    assert (ROOT / "workflow" / include[0]).resolve() == ROOT / "Snakefile"
    assert (ROOT / "config/README.md").exists()
    assert "workflow" in (ROOT / "README.md").read_text().lower()


FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_has_what_github_asks_for(path):
    form = read_yaml(path.relative_to(ROOT))
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 2
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


# --- patches

# A test that fails here after an update of the lock says which part of rules/patches.smk can go.
PATCHES = (ROOT / "rules/patches.smk").read_text()


def test_the_scheduler_has_a_rate_limit_of_its_own_and_wakes_up_for_it_after_each_job():
    assert "workflow.scheduler.job_rate_limiter = None" in PATCHES
    arguments = get_argument_parser([]).parse_args([])
    assert arguments.max_jobs_per_timespan
    assert "self._schedule_reevalutation(" in inspect.getsource(JobScheduler.schedule)


def test_the_handler_of_sigterm_waits_for_the_lock_of_the_thread_that_it_interrupts():
    assert "signal.SIGTERM" in PATCHES
    assert "self._lock = threading.Lock()" in inspect.getsource(JobScheduler.__init__)
    scheduler = SimpleNamespace(_lock=threading.Lock(), _open_jobs=threading.Semaphore())
    with scheduler._lock:
        stop = threading.Thread(target=JobScheduler.exit_gracefully, args=[scheduler])
        stop.start()
        stop.join(0.2)
        assert stop.is_alive()
    stop.join()


def test_each_task_of_an_array_starts_as_the_first_one():
    assert '"array_jobs"' in PATCHES
    source = inspect.getsource(Executor.run_array_jobs)
    assert "exec_job = self.format_job_exec(jobs[start_index - 1])" in source
