"""The Lightweight experiment and its small twin: every ablation of the paper trains and scores."""

import json
import re

import pytest
from conftest import ROOT, copy_project, planned
from made import golden
from made.corpora import translations, write_tatoeba
from made.experiments import shipped
from made.train import LANGUAGES, MODEL, Toy

from ems.base.schema import plain
from ems.bench.evaluate import Task, evaluate
from ems.config.load import load_yaml
from ems.model.encode import SentenceEncoder
from ems.shards.reader import PairStore
from ems.train.data import Data
from ems.train.job import train

pytestmark = pytest.mark.slow

FULL, TWIN, CODE = "lightweight", "lightweight-small", "lightweight-released"
PAIRS = {name: ["fr", "de", "es", "it"] for name in (FULL, CODE)} | {TWIN: ["fr", "es"]}
OBJECTIVES = ("ugt", "align", "similarity", "mlm", "smlm", "xtr", "contrastive")


def weights(system):
    objectives = system.objectives
    return {name: getattr(objectives, name).weight for name in objectives.active}


# --- the settings


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_the_systems_are_the_entries_of_tables_2_and_5_to_9(name):
    """The golden file was compared with the paper's tables, sections 4.1 and Eq. 7."""
    experiment, entries = shipped(name), {}
    for system, own in experiment.systems.items():
        entry, code = system.rsplit("-", 1)
        assert (own.vocabulary, own.languages) == (code, ("en", code))
        for role in ("train", "validation"):
            found = [pair for _, pair in experiment.pairs_of(role, code)]
            assert found == ["-".join(sorted(["en", code]))]
        sizes = f"layers {own.model.layers}, width {own.model.width}"
        sizes += f", batch {own.train.batch_pairs}, corpus {own.train.corpus_share}"
        steps = f"{code} {own.train.warmup_steps:,}/{own.train.steps:,}"
        entries.setdefault(f"{entry}: {weights(own)}; {sizes}", []).append(steps)
    lines = [f"{entry}; steps {', '.join(steps)}\n" for entry, steps in entries.items()]
    golden.check(f"configs/{name}.txt", "".join(lines))
    used = {system.vocabulary for system in experiment.systems.values()}
    assert used == set(PAIRS[name])  # not the shared one, so it is not made


def test_the_full_size_is_that_of_the_paper():
    experiment = shipped(FULL)
    system = experiment.systems["ugt-align-sim-fr"]
    model, head = system.model, system.objectives.head
    assert (model.layers, model.width, model.heads, model.feed_forward) == (2, 512, 8, 1024)
    assert (head.output, head.bias, head.language_width) == ("shared", True, 0)
    assert (system.train.batch_pairs, system.train.learning_rate) == (128, 0.001)
    assert {own.settings.size for own in experiment.vocabularies.values()} == {50_000}
    assert experiment.splits["ParaCrawl"].first == {"validation": 10_000}
    europarl = experiment.evalsets["europarlxsr"]  # section 4.4
    assert set(europarl.languages.values()) == set(PAIRS[FULL])
    protocol = europarl.protocol
    assert (protocol.queries, protocol.candidates, protocol.margin) == (2_000, 200_000, "absolute")
    probe = experiment.probes["mldoc"]  # section 4.3: "a new linear classifier"
    assert (probe.hidden, probe.seeds) == ([], 5)


def flat(settings, path=""):
    """Map dotted keys to values."""
    if not isinstance(settings, dict):
        return {path[1:]: settings}
    return {k: v for key, own in settings.items() for k, v in flat(own, f"{path}.{key}").items()}


def test_the_released_code_differs_from_the_paper_as_documented():
    """docs/fidelity.md explains each difference; all else of the experiment is the same."""
    lines = {}
    for system, own in shipped(CODE).systems.items():
        paper = shipped(FULL).systems[system]
        for part in ("model", "objectives", "train"):
            old, new = (flat(plain(getattr(each, part))) for each in (paper, own))
            for key in (key for key in new if new[key] != old.get(key)):
                change = f"{part}.{key}: {old.get(key)} -> {new[key]}"
                lines.setdefault(change, []).append(system)
    text = "".join(f"{change} ({', '.join(names)})\n" for change, names in lines.items())
    golden.check(f"configs/{CODE}.txt", text)
    full, code = (load_yaml(ROOT / "configs" / f"{name}.yaml") for name in (FULL, CODE))
    own = {"description", "model", "objectives", "train", "systems", "tables"}
    assert {key for key in full if full[key] != code[key]} == own


def test_the_twin_has_the_entries_and_studies_of_the_full_size():
    """Except for widths, and for studies of the number of pairs and of widths."""

    def entries(name):
        value = load_yaml(ROOT / "configs" / f"{name}.yaml")
        own = ("lightweight_data", "lightweight_dimension")
        studies = value["tables"]["studies"]
        kept = {key: s | {"rows": 0} if key in own else s for key, s in studies.items()}
        return {key for key in value["systems"] if not key.startswith("width")}, list(studies), kept

    assert entries(FULL) == entries(TWIN)


# --- each of them trains and scores

ENTRIES = list(load_yaml(ROOT / "configs" / f"{TWIN}.yaml")["systems"])


class Small(Toy):
    """The systems of the twin on generated pairs of three languages, smaller still."""

    def __init__(self, folder):
        super().__init__(folder)
        twin = load_yaml(ROOT / "configs" / f"{TWIN}.yaml")
        systems = {
            name: {key: value for key, value in entry.items() if key not in ("model", "each")}
            | {"model": {"layers": entry.get("model", {}).get("layers", 2)}, "each": ["fr", "de"]}
            for name, entry in twin["systems"].items()
        }
        for entry in systems.values():
            entry["train"] = entry.get("train", {}) | {"steps": 4, "batch_pairs": 8}
        self.settings.write(
            self.settings.base
            | {"objectives": twin["objectives"], "systems": systems, "model": MODEL}
            | {"vocabularies": {code: {"languages": ["en", code]} for code in ("fr", "de")}}
        )
        for code, language in (("fra", "fr"), ("deu", "de")):
            items = list(translations(12, LANGUAGES, 5, least=2))
            write_tatoeba(folder, code, [(item[language], item["en"]) for item in items])

    def data_of(self, languages):
        shards = [
            [path for path in self.shards(part) if path.parent.name == "en-fr"]
            for part in ("training", "validation")
        ]
        return Data(*(PairStore(paths, languages, 20) for paths in shards), self.vocabulary)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_the_twin_trains_with_its_losses_and_scores_its_language(
    small, tmp_path, entry
):
    experiment, name = small.settings.load(), f"{entry}-fr"
    train(experiment, name, small.data_of(["en", "fr"]), tmp_path / "model", tmp_path / "state")
    rows = [json.loads(row) for row in (tmp_path / "model/losses.jsonl").read_text().splitlines()]
    expected = set(weights(shipped(TWIN).systems[name]))
    for row in rows:
        assert set(row) & {*OBJECTIVES, "total"} == expected | {"total"}
    description = json.loads((tmp_path / "model/model.json").read_text())
    assert description["languages"] == ["en", "fr"]
    encoder = SentenceEncoder(tmp_path / "model", "cpu")
    folders = {"tatoeba": small.folder / "tatoeba"}
    task = Task(encoder, experiment, name, "tatoeba", folders)
    scores = evaluate(task, tmp_path / "s.json")
    assert set(scores.labelled()) == {"fra"}


# --- through the workflow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose experiments have addresses as sources: a directory would have to be there."""
    project = copy_project(tmp_path_factory.mktemp("lightweight"))
    for folder in ("opus", "tatoeba_v1", "sib200"):
        address = f"https://mirror.invalid/{folder}"
        project.edit(f"configs/{TWIN}.yaml", f"../shared/data/{folder}", address)
    return project


@pytest.mark.parametrize("name", [FULL, TWIN, CODE])
def test_each_vocabulary_has_shards_of_its_own_pair(project, name):
    """Planned without a network."""
    plan = project.snakemake("-np", "--config", f"experiment={name}", "--", "all")
    jobs = planned(plan)
    every = shipped(name).systems  # each is shown or in a study
    assert (jobs["train"], jobs["vocabulary"]) == (len(every), len(PAIRS[name]))
    shards = re.findall(r"ems shards --source (.*?) --vocabulary \S+/vocab/(\w+)/", plan)
    made = {(code, path.split("/")[-1]) for paths, code in shards for path in paths.split()}
    assert made == {(code, f"{'-'.join(sorted(['en', code]))}.tsv") for code in PAIRS[name]}
    for table in load_yaml(ROOT / "configs" / f"{name}.yaml")["tables"].get("studies", {}):
        assert f"results/tables/{table}.tex" in plan
