"""Laws of the Lightweight experiment and its twin: each ablation is there, trains and scores."""

import json

import pytest
import yaml
from conftest import ROOT, copy_project, planned
from made.corpora import translations, write_opus, write_tatoeba
from made.experiments import shipped
from made.train import LANGUAGES, MODEL, Toy

from ems.base.schema import plain
from ems.bench.evaluate import evaluate
from ems.config.load import load_yaml
from ems.model.encode import SentenceEncoder
from ems.shards.reader import PairStore
from ems.train.data import Data
from ems.train.job import train

FULL, TWIN, CODE = "lightweight", "lightweight-small", "lightweight-released"
PAIRS = {name: ["fr", "de", "es", "it"] for name in (FULL, CODE)} | {TWIN: ["fr", "es"]}
JOINT = {"ugt": 1, "align": 2, "similarity": 2}  # Eq. 7
TASKS = {  # entry -> the objectives with a weight (Tables 6 and 7)
    "ugt": {"ugt": 1},
    "ugt-align": {"ugt": 1, "align": 2},
    "ugt-align-sim": JOINT,
    "mlm": {"mlm": 1},
    "smlm": {"smlm": 1},
    "xtr": {"xtr": 1},
    "mlm-xtr": {"mlm": 1, "xtr": 1},
}


def weights(system):
    objectives = system.objectives
    return {name: getattr(objectives, name).weight for name in objectives.active}


# --- the settings


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_every_language_pair_has_a_vocabulary_and_a_model_of_its_own(name):
    experiment = shipped(name)
    for code in PAIRS[name]:
        assert experiment.vocabularies[code].languages == ("en", code)
        system = experiment.systems[f"ugt-align-sim-{code}"]
        assert (system.vocabulary, system.languages) == (code, ("en", code))
        pair = "-".join(sorted(["en", code]))
        assert [own for _, own in experiment.pairs_of("train", code)] == [pair]
        assert [own for _, own in experiment.pairs_of("validation", code)] == [pair]
    used = {system.vocabulary for system in experiment.systems.values()}
    assert used == set(PAIRS[name])  # none the shared one, so that is not made


@pytest.mark.parametrize("name", [FULL, TWIN])
@pytest.mark.parametrize("task", TASKS)
def test_each_training_task_of_tables_6_and_7_is_an_entry(name, task):
    experiment = shipped(name)
    for code in PAIRS[name] if task in ("ugt", "ugt-align-sim") else ("fr", "es"):
        assert weights(experiment.systems[f"{task}-{code}"]) == TASKS[task]


ABLATIONS = [
    ("layers", "model", "layers", [1, 3, 4, 6]),
    ("batch", "train", "batch_pairs", [64, 256]),
]


@pytest.mark.parametrize("name", [FULL, TWIN])
@pytest.mark.parametrize(("word", "part", "key", "values"), ABLATIONS)
def test_layers_and_batch_of_tables_5_and_8_are_entries(name, word, part, key, values):
    experiment = shipped(name)
    base = experiment.systems["ugt-align-sim-fr"]
    assert getattr(getattr(base, part), key) not in values
    for value in values:
        system = experiment.systems[f"{word}-{value}-align-sim-fr"]
        assert getattr(getattr(system, part), key) == value
        assert weights(system) == JOINT
        assert plain(system.model) | {"layers": 2} == plain(base.model)


@pytest.mark.parametrize("name", [FULL, TWIN])
def test_width_and_corpus_of_figure_2_and_table_9_are_entries(name):
    systems = shipped(name).systems
    shares = {12: 0.125, 25: 0.25, 50: 0.5}
    for word, share in shares.items():
        for more in ("", "-align-sim"):
            assert systems[f"corpus-{word}{more}-fr"].train.corpus_share == share
    base = systems["ugt-fr"].model.width
    for width in (base // 4, base // 2, 2 * base):
        assert systems[f"width-{width}-fr"].model.width == width
        assert weights(systems[f"width-{width}-align-sim-fr"]) == JOINT


def test_the_full_size_is_that_of_the_paper():
    experiment = shipped(FULL)
    system = experiment.systems["ugt-align-sim-fr"]
    model, head = system.model, system.objectives.head
    sizes = (model.layers, model.width, model.heads, model.feed_forward)
    assert sizes == (2, 512, 8, 1024)
    assert (head.output, head.bias, head.language_width) == ("shared", True, 0)
    assert (system.train.batch_pairs, system.train.learning_rate) == (128, 0.001)
    assert {own.settings.size for own in experiment.vocabularies.values()} == {50_000}
    assert experiment.splits["ParaCrawl"].first == {"validation": 10_000}
    pairs = {
        "fr": (37.8e6, 12, 3),
        "de": (29.6e6, 12, 3),
        "es": (32.8e6, 12, 3),
        "it": (17.3e6, 30, 6),
    }
    for code, (count, epochs, warmup) in pairs.items():  # Table 2 and section 4.1
        own = experiment.systems[f"ugt-{code}"].train
        assert own.steps == pytest.approx(count * epochs / 128, abs=1)
        assert own.warmup_steps == pytest.approx(count * warmup / 128, abs=1)


DIFFERENCES = {  # of the code from the paper: original-code.md sections 8 and 11
    "model.start": "pytorch",
    "model.norm_eps": 1e-12,
    "objectives.head.layer_norm": True,
    "objectives.ugt.target": "distinct",
    "objectives.similarity.reduction": "sum",
    "train.warmup_steps": int(2 / (1 - 0.999)),
    "train.schedule": "step",
    "train.amsgrad": True,
    "train.keep": "best",
    "train.precision": "float16",
}
EPOCHS = {"fr": (12, 3), "de": (12, 3), "es": (12, 3), "it": (30, 6)}  # in all; at the first rate


@pytest.mark.parametrize("code", PAIRS[FULL])
@pytest.mark.parametrize("task", ["ugt", "ugt-align-sim"])
def test_the_released_code_is_the_papers_system_but_for_its_differences(task, code):
    paper, own = (
        {
            f"{part}.{section}.{key}" if section else f"{part}.{key}": value
            for part in ("model", "objectives", "train")
            for section, keys in sections(getattr(shipped(name).systems[f"{task}-{code}"], part))
            for key, value in keys.items()
        }
        for name in (FULL, CODE)
    )
    expected = dict(DIFFERENCES)
    if task == "ugt":
        del expected["objectives.similarity.reduction"]
    differ = {key: own[key] for key in own if own[key] != paper.get(key)}
    epochs, first = EPOCHS[code]
    steps = own["train.steps"]
    assert differ.pop("train.schedule_steps") == pytest.approx(steps * first / epochs, abs=1)
    assert differ.pop("train.validate_every") == pytest.approx(steps / epochs, abs=1)
    assert differ == expected
    assert own["train.schedule_steps"] == paper["train.warmup_steps"]


def sections(settings):
    """(name, keys) of the sections of settings; "" for keys of their own."""
    value = plain(settings)
    inner = [(name, keys) for name, keys in value.items() if isinstance(keys, dict)]
    return [*inner, ("", {key: v for key, v in value.items() if not isinstance(v, dict)})]


def test_the_released_experiment_is_the_full_one_in_all_else():
    """Its data, vocabularies and benchmarks; of the systems those that the code knows."""
    full, code = (load_yaml(ROOT / "configs" / f"{name}.yaml") for name in (FULL, CODE))
    own = {"description", "model", "objectives", "train", "systems", "tables"}
    assert {key for key in full if full[key] != code[key]} == own
    assert list(code["systems"]) == ["ugt", "ugt-align-sim"]


def test_the_full_size_retrieves_and_classifies_as_sections_4_3_and_4_4_say():
    experiment = shipped(FULL)
    europarl = experiment.evalsets["europarlxsr"]
    assert set(europarl.languages.values()) == set(PAIRS[FULL])
    how = europarl.protocol
    assert (how.queries, how.candidates, how.margin) == (2_000, 200_000, "absolute")
    assert experiment.probes["mldoc"].hidden == []  # "a new linear classifier"
    assert experiment.probes["mldoc"].seeds == 5


def test_the_twin_has_the_entries_of_the_full_size_but_for_the_widths():
    def entries(name):
        systems = load_yaml(ROOT / "configs" / f"{name}.yaml")["systems"]
        return {key for key in systems if not key.startswith("width")}

    assert entries(FULL) == entries(TWIN)


def test_both_have_the_papers_tables_as_studies_that_differ_in_what_they_can_show():
    def studies(name):
        found = load_yaml(ROOT / "configs" / f"{name}.yaml")["tables"]["studies"]
        own = ("lightweight_data", "lightweight_dimension")  # of the pairs and the widths
        kept = {key: value for key, value in found.items() if key not in own}
        return list(found), kept, [{**found[key], "rows": 0} for key in own]

    assert studies(FULL) == studies(TWIN)


# --- each of them trains and scores

ENTRIES = list(load_yaml(ROOT / "configs" / f"{TWIN}.yaml")["systems"])


class Small(Toy):
    """The twin's systems on made-up pairs of three languages, smaller still."""

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
        """The shards of these languages, as the index of their vocabulary lists them."""
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
        assert expected | {"total"} <= set(row)
        assert not (set(TASKS) | {"contrastive"}) - expected & set(row)
    description = json.loads((tmp_path / "model/model.json").read_text())
    assert description["languages"] == ["en", "fr"]
    names = {"system": name, "benchmark": "tatoeba"}
    encoder = SentenceEncoder(tmp_path / "model", "cpu")
    folders = {"tatoeba": small.folder / "tatoeba"}
    scores = evaluate(encoder, experiment, names, folders, tmp_path / "s.json")
    assert set(scores.labelled()) == {"fra"}


# --- through the workflow

MIRROR = """
description: two systems of the twin on two pairs
sources: {opus: mirror/opus, tatoeba: mirror/tatoeba}
languages: [en, fr, de]
corpora: [{name: Tatoeba, version: v2021-08-07}]
validation: {name: NTREX, version: v1}
evalsets: {tatoeba: {version: v1}}
decontaminate: {against: [tatoeba]}
benchmarks: [tatoeba]
probes: {}
vocabulary: {size: 240, sample_lines: 1000, character_coverage: 1.0}
vocabularies: {fr: {languages: [en, fr]}, de: {languages: [en, de], size: 230}}
model: {layers: 1, width: 16, heads: 2, feed_forward: 24, max_tokens: 40}
train: {steps: 6, batch_pairs: 8, validate_every: 6, threads: 1, device: cpu}
systems:
  ugt-align-sim: {objectives: {align: {weight: 2}, similarity: {weight: 2}}, each: [fr, de]}
  both: {}
tables: {systems: [ugt-align-sim, both], printed: []}
"""


TABLE = "results/tables/tatoeba.tex"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project in which the table of the systems above has been made."""
    project = copy_project(tmp_path_factory.mktemp("lightweight"))
    value = yaml.safe_load((project.folder / f"configs/{TWIN}.yaml").read_text())
    value |= yaml.safe_load(MIRROR)
    project.select("mine", value)
    mirror = project.folder / "mirror"
    for corpus, version, count in (("Tatoeba", "v2021-08-07", 200), ("NTREX", "v1", 20)):
        items = list(translations(count, ["en", "fr", "de"], seed=corpus, least=3))
        write_opus(mirror, corpus, version, items)
    items = list(translations(20, ["en", "fr", "de"], seed="tatoeba", least=4))
    for code, language in (("fra", "fr"), ("deu", "de")):
        write_tatoeba(mirror, code, [(item[language], item["en"]) for item in items])
    project.snakemake(TABLE)
    return project


def test_the_workflow_makes_a_vocabulary_and_shards_for_each_and_the_text_once(run):
    results = run.folder / "results/mine"
    assert sorted(path.name for path in (results / "vocab").glob("[!.]*")) == ["de", "fr", "shared"]
    pairs = {
        name: sorted(
            path.name for path in (results / "shards" / name / "Tatoeba/v2021-08-07").iterdir()
        )
        for name in ("de", "fr", "shared")
    }
    assert pairs == {"de": ["de-en"], "fr": ["en-fr"], "shared": ["de-en", "en-fr"]}
    segmented = list((results / "text/segmented/Tatoeba/v2021-08-07").glob("*.tsv"))
    assert len(segmented) == 2
    languages = {
        name: json.loads((results / f"models/{name}/model.json").read_text())["languages"]
        for name in ("ugt-align-sim-fr", "ugt-align-sim-de", "both")
    }
    assert languages == {
        "ugt-align-sim-fr": ["en", "fr"],
        "ugt-align-sim-de": ["en", "de"],
        "both": ["en", "fr", "de"],
    }
    table = (run.folder / "results/tables/tatoeba.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in table] == ["Model", "ugt-align-sim", "both"]
    assert "Nothing to be done" in run.snakemake(TABLE)


def test_a_changed_vocabulary_reruns_its_own_shards_and_systems_only(run):
    path = run.folder / "configs/mine.yaml"
    text = path.read_text()
    assert text.count("size: 230") == 1
    path.write_text(text.replace("size: 230", "size: 220"))
    plan = run.snakemake("-n", TABLE)
    path.write_text(text)
    outputs = " ".join(line for line in plan.splitlines() if "output:" in line)
    for place in ("shards/de/", "models/ugt-align-sim-de/"):
        assert place in outputs
    for place in ("shards/fr/", "shards/shared/", "models/ugt-align-sim-fr/", "models/both/"):
        assert place not in outputs


@pytest.mark.parametrize("name", [FULL, TWIN, CODE])
def test_the_whole_experiment_is_planned_without_a_network(run, name):
    if name == TWIN:  # from an address: a directory would have to be there
        for folder in ("opus", "tatoeba_v1", "sib200"):
            address = f"https://mirror.invalid/{folder}"
            run.edit(f"configs/{TWIN}.yaml", f"../shared/data/{folder}", address)
    plan = run.snakemake("-n", "--config", f"experiment={name}", "--", "all")
    jobs = planned(plan)
    every = shipped(name).systems  # each is shown or in a study
    assert (jobs["train"], jobs["vocabulary"]) == (len(every), len(PAIRS[name]))
    for table in load_yaml(ROOT / "configs" / f"{name}.yaml")["tables"].get("studies", {}):
        assert f"results/tables/{table}.tex" in plan


def test_the_released_system_of_ems_is_planned(run):
    target = "results/ems62/models/ems-released/model.json"
    plan = run.snakemake("-n", "--config", "experiment=ems62", "--", target)
    assert planned(plan)["train"] == 1
