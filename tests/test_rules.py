"""Rules of Snakemake and stages of DVC: order, quotes, where jobs run, which source they run."""

import re
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from ems.base.errors import EmsError
from ems.base.provenance import source_files, source_root
from ems.config.plugins import benchmark, benchmarks, sets
from ems.tables.registry import outputs
from ems.workflow.jobs import Jobs, bench_modules, demo_modules, evalkeys_modules, table_modules
from ems.workflow.plan import check_cluster
from ems.workflow.rules import Workflow

RULES = sorted((ROOT / "rules").glob("*.smk"))
NUMBERS = {"threads", "resources.processes", "resources.nodes"}  # need no quotes


def shell_texts(path):
    text = path.read_text()
    blocks = re.findall(r'^    shell:\n((?: {8}".*"\n)+)', text, re.MULTILINE)
    assert len(blocks) == len(re.findall(r"\bshell\b", text)), path
    return blocks


def test_every_value_in_a_shell_text_is_quoted_and_a_source_with_a_hyphen_is_no_flag():
    texts = [text for path in RULES for text in shell_texts(path)]
    assert len(texts) > 12
    text = "".join(texts)
    fields = re.findall(r"{([^}]*)}", text)
    assert [field for field in fields if not field.endswith(":q") and field not in NUMBERS] == []
    assert "--source {params.source:" not in text


ORDER = ["default_target", "input", "output", "log", "wildcard_constraints", "priority"]
ORDER += ["retries", "group", "threads", "resources", "params", "shell"]


ON_A_CLUSTER = "wikipedia align prepare multiway vocabulary_sample vocabulary shard "
ON_A_CLUSTER += "shard_multiway mine train fit bench examples"


def test_only_these_rules_ask_a_cluster_for_memory():
    """The others run where Snakemake runs: they are short, or need the internet."""
    text = "".join(map(Path.read_text, RULES))
    asking = re.compile("mem_mb=|TRAINING,")
    rules = [rule for rule in re.split(r"^rule ", text, flags=re.MULTILINE) if asking.search(rule)]
    assert {rule.partition(":")[0] for rule in rules} == set(ON_A_CLUSTER.split())
    lines = re.findall(r'^SUBMITTED \+?= "(.*)"', (ROOT / "Snakefile").read_text(), re.MULTILINE)
    assert {*" ".join(lines).split()} == {
        *ON_A_CLUSTER.split(),
        "prepare_validation",
        "pair",
        "train_on_nodes",
    }


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_the_parts_of_every_rule_stand_in_the_same_order(path):
    for rule in re.split(r"^(?=rule |use rule )", path.read_text(), flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^    (\w+):", rule, re.MULTILINE)
        assert parts == [part for part in ORDER if part in parts]


def test_a_missing_system_package_is_named_when_jobs_are_planned(monkeypatch):
    monkeypatch.chdir(ROOT)
    workflow = Workflow({"experiment": "tiny"}, main=False, dry_run=True)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EmsError, match="latexmk texlive-latex-base"):
        Jobs(workflow).pdf_tables({})
    with pytest.raises(EmsError, match="slurm-client"):
        check_cluster(workflow.plan)


# --- stages of DVC

DEFAULTS = {ROOT / "ems/config"}  # of settings, which count by their values: no rule hashes it
ENTRIES = {  # stage of dvc.yaml -> the modules whose imports are its source
    "data": [*demo_modules(), "ems.text.wikipedia"],
    "text": [
        *evalkeys_modules(name for name in sets() if not benchmark(name).drawn),
        *("ems.text.prepare", "ems.text.subwords", "ems.text.vocabulary_report"),
        *("ems.shards.writer", "ems.use.aligned"),
    ],
    "train": ["ems.train.job", "ems.train.mine_documents", "ems.model.fit"],
    "tables": [
        *("ems.bench", "ems.model.encode", "ems.tables"),
        *(module for name in benchmarks() for module in bench_modules(name, "fused")),
        *(module for name in outputs()["table"] for module in table_modules(name)),
        *(module for name in outputs()["figure"] for module in table_modules(name)),
    ],
    "selected": ["ems.tables.table"],
    "export": ["ems.export"],
}


@pytest.mark.parametrize("stage", ENTRIES)
def test_the_deps_of_a_stage_cover_the_source_that_it_runs(stage):
    """Without such a dep DVC would skip a stage; a dep that no rule hashes would run it in vain."""
    entry = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"][stage]["do"]
    deps = {ROOT / dep for dep in entry["deps"] if dep.startswith("ems/")}
    root, used = source_root().parent, set()
    for path in {path for module in ENTRIES[stage] for path in source_files(module)}:
        path = ROOT / path.relative_to(root)
        covering = deps & {path, *path.parents}
        assert covering, f"{path} for {stage}"
        used |= covering
    assert deps - DEFAULTS == used


BY_HAND = {"tables_pdf", "selected_pdf"}  # they need LaTeX, so no stage makes them


def test_every_rule_of_the_workflow_may_run_in_exactly_one_stage(monkeypatch):
    monkeypatch.chdir(ROOT)
    targets = [*Workflow({"experiment": "tiny"}, main=False, dry_run=True).targets]
    sources = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    rules = targets + re.findall(
        r"^(?:use rule \w+ as|rule) (\w+)(?: with)?:",
        "".join(map(Path.read_text, sources)),
        re.MULTILINE,
    )
    allowed = []
    for stage in yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].values():
        words = stage["do"]["cmd"].split()
        allowed += words[words.index("--allowed-rules") + 1 : words.index("--")]
    assert len(rules) > 15
    assert sorted(allowed) == sorted(set(rules) - BY_HAND)
