"""Laws of what stands around the code: installation, containers, citation, public CI, forms."""

import re
import subprocess
import tomllib

import pytest
import yaml
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import ems

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
    for each in [*wanted, *map(Requirement, PROJECT["dependencies"])]:
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
    uv, lock = cpu.index("--torch-backend cpu"), cpu.index(f"-r {LOCK}")
    assert uv < lock
    assert "\n".join(line for line in cpu.splitlines() if "--torch-backend" not in line) == (
        plain.rstrip("\n")
    )
    assert "://" not in cpu  # the address of the build is uv's to know


def test_the_citation_names_this_version_and_the_papers_that_the_experiments_reproduce():
    citation = read_yaml("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "message", "authors", "license", "type"} <= set(citation)
    assert citation["version"] == PROJECT["version"] == ems.__version__
    assert citation["license"] == PROJECT["license"]
    papers = [citation["preferred-citation"], *citation["references"]]
    assert [paper["year"] for paper in papers] == [2024, 2021, 2019]
    for paper in papers:
        assert {"type", "title", "authors", "year"} <= set(paper)
        assert all({"family-names", "given-names"} == set(author) for author in paper["authors"])
    assert citation["preferred-citation"]["title"] in (ROOT / "README.md").read_text().replace(
        "\n", " "
    )


def test_the_list_of_changes_begins_with_what_is_not_released_or_with_this_version():
    headings = re.findall("^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert re.match(
        rf"Unreleased$|{re.escape(PROJECT['version'])} - \d{{4}}-\d\d-\d\d$", headings[0]
    )
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall("^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)) <= kinds


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
