"""Laws of the settings: a mistake is one line, nothing leaks, a hash changes when it must and only
then."""

import copy
import json
import shutil
import subprocess
import sys
from dataclasses import asdict

import pytest
import yaml
from conftest import ROOT

from ems.config import load_experiment, load_site, stage_hash
from ems.config import provenance as source
from ems.config.schema import load_yaml, merge, with_defaults
from ems.corpora.catalogue import check_corpora
from ems.errors import EmsError
from ems.plan import plan

SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
SITE = {"experiment": "mine", "data": "data", "sources": {"opus": "o", "tatoeba": "t"}}
MINIMAL = yaml.safe_load("""
description: the least that an experiment must say
seed: 1
languages: [en, de, ja]
sources: {}
corpora: [{name: Tatoeba, version: v2021-08-07}]
validation: {name: NTREX, version: v1}
evalsets: {tatoeba: {version: v1}}
decontaminate: {}
segmenters: {default: none}
vocabulary: {size: 500}
model: {width: 32, heads: 2}
objectives: {}
train: {steps: 10}
systems: {a: {}, b: {model: {layers: 1}}, ngram: {kind: char-ngram}}
benchmarks: [tatoeba]
tables: {}
""")
GONE = object()


def edited(value, path, new):
    """A copy of `value` with the key at the dotted `path` set to `new`, or taken out."""
    value = copy.deepcopy(value)
    *front, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    at = value
    for key in front:
        at = at[key] if isinstance(at, list) else at.setdefault(key, {})
    if new is GONE:
        del at[last]
    else:
        at[last] = new
    return value


class Project:
    """A folder with a config.yaml and the experiment `mine`."""

    def __init__(self, root):
        self.root = root
        shutil.copytree(ROOT / "schemas", root / "schemas")
        (root / "configs").mkdir()
        self.write(MINIMAL)
        self.site(SITE)

    def write(self, value, name="mine"):
        text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
        (self.root / "configs" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def site(self, value):
        (self.root / "config.yaml").write_text(yaml.safe_dump(value), encoding="utf-8")

    def load(self, value=None, **overrides):
        if value is not None:
            self.write(value)
        return plan(overrides, self.root).experiment


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def told(project, value=None, **overrides):
    """The one line that a bad setting is told with."""
    with pytest.raises(EmsError) as error:
        project.load(value, **overrides)
    message = str(error.value)
    assert "\n" not in message
    return message


def shipped(name):
    site = load_site(ROOT / "config.yaml", ROOT / "schemas", {"experiment": name})
    return load_experiment(name, site, ROOT / "configs", ROOT / "schemas")


# --- the experiments that are here


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_loads_and_knows_its_corpora(name):
    experiment = shipped(name)
    check_corpora(experiment)
    assert experiment.name == name
    assert experiment.systems
    assert all(corpus.pairs for _, corpus in experiment.all_corpora())
    for system in experiment.systems.values():
        assert set(system) == {"kind", "model", "objectives", "train"}


def test_the_site_settings_name_an_experiment_that_is_here():
    assert load_site(ROOT / "config.yaml", ROOT / "schemas")["experiment"] in SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_of_one_experiment_leaks_into_another(name):
    program = (
        "import json, sys; from dataclasses import asdict\n"
        "from ems.config import load_experiment, load_site; from pathlib import Path\n"
        "site = load_site(Path('config.yaml'), Path('schemas'), {'experiment': sys.argv[1]})\n"
        "print(json.dumps(asdict(load_experiment(sys.argv[1], site)), sort_keys=True))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for other in SHIPPED:  # in this process the others come first
        spoilt = shipped(other)
        spoilt.systems.clear()
        spoilt.vocabulary["size"] = 7
        spoilt.segmenters["en"] = "spoilt"
    assert json.dumps(asdict(shipped(name)), sort_keys=True) == done.stdout.strip()


# --- mistakes

LANGUAGES = "allowed: af, ar, bg"
MISTAKES = [
    # a typo: the key, the right one, the allowed ones
    ("sed", 1, ["sed: unknown key (did you mean seed?)", "benchmarks, corpora, decontaminate"]),
    ("corpora.0.max_pair", 3, ["corpora.0.max_pair", "(did you mean max_pairs?)", "languages"]),
    ("train.step", 5, ["train.step: unknown key", "did you mean steps?", "batch_pairs"]),
    ("evalsets.flores", {}, ["evalsets.flores: unknown key", "allowed here: tatoeba"]),
    ("validation.nam", "x", ["validation.nam: unknown key (did you mean name?)", "version"]),
    ("sources.opsu", "x", ["sources.opsu: unknown key (did you mean opus?)", "opus, tatoeba"]),
    ("systems.b.modle", {}, ["systems.b.modle: unknown key (did you mean model?)", "kind"]),
    ("systems.b.model.layer", 2, ["systems.b.model.layer", "(did you mean layers?)", "heads"]),
    (
        "systems.b.objectives.xtr.weigth",
        0,
        ["systems.b.objectives.xtr.weigth: unknown key (did you mean weight?)"],
    ),
    # a missing key
    ("seed", GONE, ["seed: this key is missing"]),
    ("systems", GONE, ["systems: this key is missing"]),
    ("validation.name", GONE, ["validation.name: this key is missing"]),
    ("train.steps", GONE, ["train.steps: this key is missing"]),
    ("vocabulary.size", GONE, ["vocabulary.size: this key is missing"]),
    # a wrong type
    ("seed", "1", ["seed: found '1', expected integer"]),
    ("seed", 1.0, ["seed: found 1.0, expected integer"]),
    ("seed", True, ["seed: found True, expected integer"]),
    ("train.learning_rate", "3e-4", ["train.learning_rate: found '3e-4', expected number"]),
    ("languages", "en", ["languages: found 'en', expected array"]),
    ("languages.1", False, ["languages.1: found False, expected string or object"]),  # YAML's no
    ("corpora.0", "Tatoeba", ["corpora.0: found 'Tatoeba', expected object"]),
    ("validation", "NTREX", ["validation: found 'NTREX', expected object or null"]),
    ("systems.b", None, ["systems.b: found None, expected object"]),
    # a value that is not allowed
    ("train.schedule", "cosine", ["train.schedule: found 'cosine'", "constant, linear"]),
    ("decontaminate.key", "fold", ["decontaminate.key: found 'fold'", "folded, plain"]),
    ("systems.b.kind", "encode", ["systems.b.kind: found 'encode'", "encoder, char-ngram"]),
    ("tables.printed", ["EMSS"], ["tables.printed.0: found 'EMSS'", "LaBSE-EMS-joint"]),
    ("benchmarks", ["x"], ["benchmarks.0: found 'x'", "allowed values: tatoeba"]),
    ("vocabulary.size", 70_000, ["vocabulary.size: 70000", "maximum of 65535"]),
    ("train.batch_pairs", 1, ["train.batch_pairs: 1", "minimum of 2"]),
    ("systems", {}, ["systems: {}", "non-empty"]),
    # unknown languages, corpora, versions, segmenters
    ("languages", ["en", "xx"], ["languages: unknown language 'xx'", LANGUAGES, "zh"]),
    ("languages", ["de", "ja"], ["languages: en is missing"]),
    ("languages", ["en", "de", "de"], ["languages: de is named twice"]),
    ("corpora.0.languages", ["fr"], ["corpora.0.languages: unknown language 'fr'", "en, de, ja"]),
    ("corpora.0.languages", ["en"], ["corpora.0.languages: found only en"]),
    ("corpora.0.languages", ["de", "de"], ["corpora.0.languages", "non-unique"]),
    ("segmenters.xx", "none", ["segmenters: unknown language 'xx'", "af, ar, bg"]),
    ("segmenters.ja", "juman", ["segmenters.ja: found 'juman'", "moses", "jieba, jumanpp"]),
    ("evalsets.tatoeba.languages", ["fr"], ["evalsets.tatoeba.languages", "'fr'", "de, ja"]),
    ("evalsets.tatoeba.languages", [], ["evalsets.tatoeba.languages: none of the languages"]),
    ("corpora.0.name", "Tatoba", ["corpora.0.name: unknown corpus 'Tatoba'", "Tatoeba, tico-19"]),
    ("corpora.0.version", "v1", ["corpora.0.version: unknown version 'v1'", "v2021-08-07"]),
    ("validation.version", "v9", ["validation.version: unknown version 'v9'", "allowed: v1"]),
    (
        "validation",
        {"name": "Tatoeba", "version": "v2021-08-07"},
        ["Tatoeba/v2021-08-07 is named twice"],
    ),
    # values that do not fit each other
    ("model.width", 33, ["systems.a: model.width 33 is no multiple of model.heads 2"]),
    ("systems.b.model.heads", 5, ["systems.b: model.width 32 is no multiple of model.heads 5"]),
    (
        "systems.b.objectives",
        {"xtr": {"weight": 0}, "contrastive": {"weight": 0}},
        ["systems.b: every objective has weight 0"],
    ),
]


@pytest.mark.parametrize(("path", "new", "parts"), MISTAKES)
def test_a_mistake_is_one_line_with_the_key_and_what_is_allowed(project, path, new, parts):
    message = told(project, edited(MINIMAL, path, new))
    for part in parts:
        assert part in message


def test_the_minimal_experiment_is_no_mistake(project):
    assert project.load(MINIMAL).name == "mine"


def test_an_unknown_experiment_is_told_with_those_that_are_here(project):
    project.write(MINIMAL, "yours")
    message = told(project, experiment="nope")
    assert "experiment: " in message
    assert "nope.yaml does not exist; the experiments here: mine, yours" in message


@pytest.mark.parametrize(
    ("path", "new", "parts"),
    [
        ("experimnt", "x", ["experimnt: unknown key (did you mean experiment?)"]),
        ("sources.opsu", "x", ["sources.opsu: unknown key", "opus, tatoeba"]),
        ("gpus", -1, ["gpus: -1", "minimum of 0"]),
        ("data", GONE, ["data: this key is missing"]),
    ],
)
def test_a_mistake_in_the_site_settings_is_one_line_too(project, path, new, parts):
    project.site(edited(SITE, path, new))
    message = told(project)
    assert "config.yaml" in message
    assert all(part in message for part in parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: [1", "not valid YAML"),
        ("- a\n- b\n", "expected `key: value` lines, found list"),
        ("", "expected `key: value` lines, found NoneType"),
        ("systems:\n  a: {}\n  a: {kind: encoder}\n", "the key a is there twice .*line 3"),
    ],
    ids=["broken", "a list", "empty", "a key twice"],
)
def test_a_file_that_is_no_mapping_is_one_line_with_its_name(project, text, message):
    project.write(text)
    with pytest.raises(EmsError, match=rf"mine\.yaml: .*{message}"):
        project.load()
    assert "\n" not in told(project)


def test_a_segmenter_that_cannot_run_here_is_told_before_any_job(project, monkeypatch, tmp_path):
    from ems.text.segment import check_available

    check_available.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    message = told(project, edited(MINIMAL, "segmenters.ja", "jumanpp"))
    assert "segmenter jumanpp" in message


# --- what is made of the settings


def test_a_system_is_the_base_plus_its_overrides(project):
    value = edited(MINIMAL, "systems.b", {"model": {"layers": 1}, "train": {"steps": 0}})
    systems = project.load(value).systems
    assert systems["a"]["model"]["layers"] == 6
    assert systems["b"]["model"] == {**systems["a"]["model"], "layers": 1}
    assert systems["b"]["train"] == {**systems["a"]["train"], "steps": 0}
    assert systems["b"]["objectives"] == systems["a"]["objectives"]
    assert (systems["a"]["kind"], systems["ngram"]["kind"]) == ("encoder", "char-ngram")


def test_merging_leaves_its_inputs_as_they_were():
    base = {"a": {"x": 1, "y": {"z": 2}}, "b": [1]}
    over = {"a": {"y": {"w": 3}}, "b": [2], "c": {"d": 4}}
    before = copy.deepcopy((base, over))
    assert merge(base, over) == {"a": {"x": 1, "y": {"z": 2, "w": 3}}, "b": [2], "c": {"d": 4}}
    assert (base, over) == before


def test_filling_in_defaults_leaves_its_input_as_it_was():
    schema = {
        "properties": {
            "a": {"default": 1},
            "b": {"default": {}, "properties": {"c": {"default": 2}}},
            "d": {"$ref": "#/$defs/d"},
            "e": {},
        }
    }
    definitions = {"d": {"properties": {"f": {"default": 3}}}}
    value = {"a": 0, "d": {}}
    filled = with_defaults(value, schema, definitions)
    assert filled == {"a": 0, "b": {"c": 2}, "d": {"f": 3}}
    assert value == {"a": 0, "d": {}}


def test_a_language_of_ones_own_needs_no_entry_in_the_table(project):
    own = {"code": "xq", "tatoeba_v1": "xqq", "script": "Latin"}
    experiment = project.load(edited(MINIMAL, "languages", ["en", "de", own]))
    assert experiment.languages["xq"].tatoeba_v1 == "xqq"
    assert experiment.corpora[0].pairs == ("de-en", "en-xq")
    assert experiment.evalsets["tatoeba"]["languages"] == ["de", "xq"]
    assert experiment.segmenters["xq"] == "none"
    bare = project.load(edited(MINIMAL, "languages", ["en", "de", {"code": "xq"}]))
    assert bare.evalsets["tatoeba"]["languages"] == ["de"]


def test_an_own_language_alone_may_lack_the_benchmark_only_with_a_clear_line(project):
    message = told(project, edited(MINIMAL, "languages", ["en", {"code": "xq"}]))
    assert "evalsets.tatoeba.languages: none of the languages is in the benchmark" in message


def test_a_corpus_of_ones_own_needs_no_entry_in_the_catalogue(project):
    own = {"name": "Mine", "version": "2024", "source": "some/where", "languages": ["ja"]}
    experiment = project.load(edited(MINIMAL, "corpora.0", own))
    corpus = experiment.corpora[0]
    assert (corpus.source, corpus.pairs, corpus.own) == ("some/where", ("en-ja",), True)
    assert experiment.validation.source == "o"  # the site's


def test_an_experiments_sources_win_over_the_sites(project):
    experiment = project.load(edited(MINIMAL, "sources", {"opus": "mine"}))
    assert experiment.sources == {"opus": "mine", "tatoeba": "t"}
    assert {corpus.source for _, corpus in experiment.all_corpora()} == {"mine"}


def test_an_unknown_corpus_of_an_experiment_is_an_error(project):
    with pytest.raises(EmsError, match="experiment mine has no corpus A/v1"):
        project.load().corpus("A", "v1")


# --- hashes of settings

TATOEBA, NTREX = "Tatoeba v2021-08-07", "NTREX v1"
JOBS = {
    "evalkeys": ("evalkeys", {}),
    **{
        f"clean {corpus.split()[0]} {pair}": (
            "clean",
            {"name": corpus.split()[0], "version": corpus.split()[1], "pair": pair},
        )
        for corpus in (TATOEBA, NTREX)
        for pair in ("de-en", "en-ja")
    },
    "segment de-en": ("segment", {"pair": "de-en"}),
    "segment en-ja": ("segment", {"pair": "en-ja"}),
    "vocabulary": ("vocabulary", {}),
    "shards": ("shards", {}),
    "train a": ("train", {"system": "a"}),
    "train b": ("train", {"system": "b"}),
    "bench a": ("bench", {"system": "a", "benchmark": "tatoeba"}),
    "bench b": ("bench", {"system": "b", "benchmark": "tatoeba"}),
    "bench ngram": ("bench", {"system": "ngram", "benchmark": "tatoeba"}),
    "tables": ("tables", {}),
}
CLEAN = {name for name in JOBS if name.startswith("clean")}
TRAIN = {"train a", "train b", "bench a", "bench b"}
BENCH = {"bench a", "bench b", "bench ngram"}
OF_B = {"train b", "bench b"}
EDITS = [
    ("description", "another", set()),
    ("seed", 2, CLEAN | {"vocabulary"} | TRAIN),
    ("sources", {"opus": "elsewhere"}, set()),
    ("corpora.0.max_pairs", 5, {name for name in CLEAN if "Tatoeba" in name}),
    ("validation.max_pairs", 5, {name for name in CLEAN if "NTREX" in name}),
    ("corpora", [MINIMAL["corpora"][0], {"name": "NusaX", "version": "v1"}], set()),
    ("corpora", [{"name": "NusaX", "version": "v1"}, MINIMAL["corpora"][0]], set()),
    ("decontaminate.key", "plain", {"evalkeys"} | CLEAN),
    ("decontaminate.scope", "pair", {"evalkeys"} | CLEAN),
    ("decontaminate.against", [], {"evalkeys"} | CLEAN),
    ("evalsets.tatoeba.version", "v2", {"evalkeys"} | BENCH),
    ("evalsets.tatoeba.languages", ["ja"], {"evalkeys"} | BENCH),
    ("segmenters.ja", "fugashi", {"segment en-ja"} | TRAIN),
    ("segmenters.default", "sacremoses", {"segment de-en", "segment en-ja"} | TRAIN),
    ("languages", ["en", "de", "ja", "fr"], {"evalkeys", "vocabulary"} | TRAIN | BENCH),
    ("languages", ["en", "ja", "de"], {"evalkeys", "vocabulary"} | TRAIN | BENCH),
    (
        "languages",
        ["en", "ja", {"code": "de", "tatoeba_v1": "gsw"}],
        {"evalkeys", "vocabulary"} | TRAIN | BENCH,
    ),
    ("vocabulary.size", 600, {"vocabulary"}),
    ("vocabulary.temperature", 2, {"vocabulary"}),
    ("model.dropout", 0.2, TRAIN),
    ("model.layers", 3, TRAIN - OF_B),  # b has its own
    ("objectives.xtr", {"weight": 0.5}, TRAIN),
    ("train.steps", 11, TRAIN),
    ("systems.b.model.layers", 2, OF_B),
    ("systems.b.train", {"batch_pairs": 4}, OF_B),
    ("systems.c", {}, {"tables"}),
    ("tables.printed", ["EMS"], {"tables"}),
    # what is the default anyway
    ("model.layers", 6, set()),
    ("decontaminate.key", "folded", set()),
    ("train.schedule", "constant", set()),
    ("corpora.0.languages", ["de", "ja"], set()),
]


def hashes(experiment):
    return {name: stage_hash(experiment, job, **names) for name, (job, names) in JOBS.items()}


@pytest.mark.parametrize(("path", "new", "changed"), EDITS)
def test_an_edit_changes_the_hash_of_the_jobs_that_read_it_and_of_no_other(
    project, path, new, changed
):
    before = hashes(project.load(MINIMAL))
    after = hashes(project.load(edited(MINIMAL, path, new)))
    assert {name for name in JOBS if before[name] != after[name]} == changed


def test_a_file_code_of_an_own_language_counts_for_what_reads_the_files(project):
    def load(code):
        own = {"code": "xq", "tatoeba_v1": code}
        return project.load(edited(MINIMAL, "languages", ["en", "de", "ja", own]))

    one, other = hashes(load("xqq")), hashes(load("xqr"))
    assert {name for name in JOBS if one[name] != other[name]} == {"evalkeys"} | BENCH


def test_a_corpus_that_changes_its_role_is_cleaned_again_for_its_report(project):
    swapped = edited(MINIMAL, "corpora", [MINIMAL["validation"]])
    swapped = edited(swapped, "validation", MINIMAL["corpora"][0])
    before, after = hashes(project.load(MINIMAL)), hashes(project.load(swapped))
    assert {name for name in JOBS if before[name] != after[name]} == CLEAN


def test_the_jobs_of_two_stages_or_pairs_never_share_a_hash_where_their_work_differs(project):
    found = hashes(project.load(MINIMAL))
    same = {"segment de-en", "segment en-ja"}  # both pairs have the same two segmenters here
    others = [value for name, value in found.items() if name not in same]
    assert len(set(others)) == len(others)
    assert not set(others) & {found[name] for name in same}


def test_a_hash_does_not_depend_on_the_order_of_the_keys(project):
    turned = dict(reversed(MINIMAL.items()))
    for key in ("model", "validation"):
        turned[key] = dict(reversed(MINIMAL[key].items()))
    assert list(turned["model"]) != list(MINIMAL["model"])
    assert hashes(project.load(turned)) == hashes(project.load(MINIMAL))


# --- hashes of the source


def of(module):
    root = source.source_root()
    return {str(path.relative_to(root)) for path in source.source_files(module)}


def test_the_source_of_training_is_what_it_imports_and_nothing_else():
    files = of("ems.train")
    assert {
        "train/loop.py",
        "model/encoder.py",
        "objectives/xtr.py",
        "shards/reader.py",
        "config/__init__.py",
        "languages/languages.tsv",
    } <= files
    folders = {name.split("/")[0] for name in files}
    assert not folders & {"tables", "bench", "corpora", "cli.py", "errors.py", "progress.py"}


def test_the_source_of_the_tables_holds_the_printed_numbers():
    files = of("ems.tables")
    assert any(name.startswith("tables/printed/") and name.endswith(".csv") for name in files)
    assert not any(name.startswith(("train/", "model/")) for name in files)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A little `ems` whose stage `a` reaches b, c and d, but not e."""
    files = {
        "__init__.py": "",
        "errors.py": "class E: ...\n",
        "progress.py": "import ems.errors\n",
        "a/__init__.py": "",
        "a/one.py": "from ems.b import thing\nfrom ems.errors import E\n",
        "a/table.tsv": "x\ty\n",
        "a/data/deep.csv": "1\n",
        "a/notes.md": "about\n",
        "b.py": "def f():\n    from ems.c import three\n    from ems import d\n",
        "c/__init__.py": "",
        "c/three.py": "import numpy\nimport ems.a.one\n",
        "c/four.py": "",
        "d.py": "from ems.progress import p\n",
        "e.py": "import ems.a\n",
    }
    for name, text in files.items():
        path = tmp_path / "ems" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(source, "source_root", lambda: tmp_path / "ems")
    source.source_files.cache_clear()
    source.source_hash.cache_clear()
    yield tmp_path / "ems"
    source.source_files.cache_clear()
    source.source_hash.cache_clear()


def hash_after(package, name, text):
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    (package / name).write_text(text)
    source.source_files.cache_clear()
    source.source_hash.cache_clear()
    return source.source_hash("ems.a")


def test_the_source_is_found_by_following_the_imports(package):
    reached = {"a/__init__.py", "a/one.py", "a/table.tsv", "a/data/deep.csv", "b.py", "d.py"}
    reached |= {"c/__init__.py", "c/three.py", "c/four.py"}
    assert of("ems.a") == reached


@pytest.mark.parametrize("name", ["a/one.py", "a/table.tsv", "a/data/deep.csv", "b.py", "d.py"])
def test_one_changed_byte_of_what_a_stage_reaches_changes_its_hash(package, name):
    before = source.source_hash("ems.a")
    text = (package / name).read_text()
    assert hash_after(package, name, text + "\n") != before
    assert hash_after(package, name, text) == before


@pytest.mark.parametrize("name", ["e.py", "errors.py", "progress.py", "a/notes.md"])
def test_what_a_stage_does_not_reach_does_not_change_its_hash(package, name):
    before = source.source_hash("ems.a")
    assert hash_after(package, name, "X = 1\n") == before


def test_a_new_file_of_a_reached_package_changes_the_hash(package):
    before = source.source_hash("ems.a")
    assert hash_after(package, "a/two.py", "") != before


# --- the file itself


def test_yaml_keeps_what_it_says(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("a: {b: [1, 2.5, on, null]}\nc: ü\n", encoding="utf-8")
    assert load_yaml(path) == {"a": {"b": [1, 2.5, True, None]}, "c": "ü"}
    with pytest.raises(EmsError, match=r"y\.yaml: no such file"):
        load_yaml(tmp_path / "y.yaml")
