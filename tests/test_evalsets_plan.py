"""Evaluation sets of an experiment: languages, copies, closed sets, sentences, the plan."""

import re

import pytest
import yaml
from conftest import ROOT, copy_project
from made import evalsets as made
from made.corpora import write_lines
from made.experiments import GONE, MINIMAL, SCHEMAS, Settings, edited

from ems.config.load import load_experiment, load_site
from ems.config.plugins import benchmark, module, sets
from ems.config.stages import stage_hash
from ems.corpora.evalsets.sets import data_files, set_files, unit_source
from ems.text.evalkeys import eval_files, write_eval_keys
from ems.workflow.sources import missing_evalsets

NEW = ("bucc2018", "xnli", "pawsx", "xsimpp", "cls", "marc", "mldoc", "rcv2", "paracrawl")
NEW += ("counterfactual",)
BASE = MINIMAL | {"languages": ["en", "de", "fr", "ja"]}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def with_sets(entries, base=BASE, **changes):
    """An experiment with these sets besides Tatoeba."""
    entries = {name: {"version": "v1", **entry} for name, entry in entries.items()}
    return base | {"evalsets": {**base["evalsets"], **entries}} | changes


# --- languages
def test_each_set_names_the_languages_by_its_own_codes(project, tmp_path):
    made.write_reuters(tmp_path / "reuters")
    paths = {"mldoc": {"languages": ["en", "de"]}, "rcv2": {"languages": ["en", "de"]}}
    paths = {name: {**entry, "path": str(tmp_path / "reuters")} for name, entry in paths.items()}
    here = {"sources": {"cls": "somewhere", "marc": "somewhere"}}
    sets_ = {name: paths.get(name, {}) for name in NEW}
    evalsets = project.load(with_sets(sets_, **here)).evalsets
    every = {name: {"languages": "all"} for name in ("bucc2018", "xnli", "pawsx", "paracrawl")}
    published = project.load(with_sets(every)).evalsets
    assert list(map(len, (published[name].languages for name in every))) == [4, 15, 7, 21]
    assert {name: evalsets[name].languages for name in NEW} == {
        "bucc2018": {"de": "de", "fr": "fr"},
        "xnli": {"en": "en", "de": "de", "fr": "fr"},
        "pawsx": {"en": "en", "de": "de", "fr": "fr", "ja": "ja"},
        "xsimpp": {"eng_Latn": "en"},
        "cls": {"en": "en", "de": "de", "fr": "fr", "jp": "ja"},
        "marc": {"en": "en", "de": "de", "fr": "fr", "ja": "ja"},
        "mldoc": {"english": "en", "german": "de"},
        "rcv2": {"english": "en", "german": "de"},
        "paracrawl": {"de": "de", "fr": "fr"},
        "counterfactual": {"EN": "en", "DE": "de", "JP": "ja"},
    }


OWN = [{"code": "xa", "tatoeba_v1": "deu"}, {"code": "xb", "tatoeba_v1": "deu"}]


@pytest.mark.parametrize("languages", ["experiment", "all", ["xa", "xb"]])
def test_two_languages_with_one_code_in_a_benchmark_are_an_error(project, languages):
    value = edited(BASE, "languages", ["en", *OWN])
    value = edited(value, "evalsets.tatoeba.languages", languages)
    expected = "evalsets.tatoeba.languages: xa and xb are both deu in the benchmark; change the"
    assert expected in project.error(value)
    chosen = project.load(edited(value, "evalsets.tatoeba.without", ["xb"]))
    assert chosen.evalsets["tatoeba"].languages["deu"] == "xa"


def test_a_language_of_the_experiment_replaces_one_of_the_table(project):
    value = edited(BASE, "languages", ["en", OWN[0]])
    value = edited(value, "evalsets.tatoeba.languages", "all")
    languages = project.load(value).evalsets["tatoeba"].languages
    assert languages["deu"] == "xa"
    assert len(languages) == 112
    message = project.error(edited(value, "languages", ["en", "de", OWN[0]]))
    assert "de and xa are both deu in the benchmark" in message


# --- copies and sources
CLS = "evalsets.cls: this set is closed (Amazon reviews, for research): ask for cls-acl10"
CLS_FILES = "expected DIRECTORY/en/books/train.review, DIRECTORY/en/books/test.review, DIRECTORY"
MARC = "evalsets.marc: this set is withdrawn (Amazon, academic research only, not to"
MLDOC = "set evalsets.mldoc.path to the DIRECTORY with it; expected DIRECTORY/mldoc-ind"
RCV2 = "expected DIRECTORY/rcv1, DIRECTORY/RCV2_Multilingual_Corpus/german, DIRECTORY"
OBTAIN = [("cls", CLS), ("cls", CLS_FILES), ("marc", MARC), ("mldoc", MLDOC), ("rcv2", RCV2)]


@pytest.mark.parametrize(("name", "expected"), OBTAIN)
def test_a_closed_set_without_a_copy_is_one_line_with_how_to_obtain_it(project, name, expected):
    message = project.error(with_sets({name: {}}))
    assert expected in message
    assert benchmark(name).obtain in message


def test_a_copy_that_is_missing_or_incomplete_is_one_line(project, tmp_path):
    gone = tmp_path / "gone"
    message = project.error(with_sets({"bucc2018": {"path": str(gone)}}))
    expected = f"evalsets.bucc2018.path: {gone} is not a directory; expected {gone}"
    assert expected in message
    assert message.endswith(f", {gone}/de-en/de-en.sample.gold and 9 more")
    here = made.write_files(tmp_path / "here", made.bucc() | made.bucc("fr"), strip=1)
    message = project.error(with_sets({"bucc2018": {"path": str(here)}}))
    assert f"path: 6 of 12 files not found: {here}/de-en/de-en.sample." in message


def test_a_copy_is_used_in_place_and_may_have_another_layout(project, tmp_path):
    for code in ("en", "de", "fr", "ja"):
        for split in ("dev", "test"):
            write_lines(tmp_path / "flat" / f"{split}-{code}.tsv", ["a\tb\t1"])
    experiment = project.load(with_sets({"pawsx": {"path": str(tmp_path / "flat")}}))
    files = data_files(experiment, "pawsx", tmp_path / "flat")
    assert files[0] == tmp_path / "flat" / "dev-en.tsv"
    assert len(files) == 8
    assert all(path.is_file() for path in files)


def test_the_dev_part_of_flores_needs_a_source_that_has_it(project):
    value = with_sets({"flores200": {"dev": True}})
    expected = "evalsets.flores200.dev: only the official archive has the dev part; set sources"
    assert expected in project.error(value)
    archive = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"
    experiment = project.load(edited(value, "sources.flores200", archive))
    assert unit_source(experiment, "flores200") == archive.rpartition("/")[0]
    (path,) = data_files(experiment, "flores200", project.root)
    assert path.name == "flores200_dataset.manifest.json"
    assert "dev/deu_Latn.dev" in str(set_files(experiment, "flores200", project.root))


PARACRAWL = {"decontaminate": {"against": ["paracrawl"]}}  # its sentences are drawn
DRAWN = "decontaminate.against.0: found 'paracrawl'; allowed values: bucc2018, cls, "
MISTAKES = [
    ({"sib200": {"dev": True}}, {}, "only flores200 may set this"),
    ({"xsimpp": {"languages": ["de"]}}, {}, "xsimpp.languages: unknown language 'de'; allowed: en"),
    ({"paracrawl": {}}, PARACRAWL, DRAWN),
]


@pytest.mark.parametrize(("entries", "changes", "expected"), MISTAKES)
def test_an_option_that_a_set_does_not_have_is_one_line(project, entries, changes, expected):
    assert expected in project.error(with_sets(entries, **changes))


# --- their sentences
def test_every_set_of_the_schema_is_known_and_has_sentences_to_decontaminate():
    schema = SCHEMAS["experiment"]["$defs"]
    known = set(schema["Evalsets"]["properties"])
    assert known == set(sets())
    against = set(schema["Decontaminate"]["properties"]["against"]["items"]["enum"])
    assert against == known - {"paracrawl", "europarlxsr"}
    assert all(hasattr(module(name, "data"), "read_sides") for name in against)


KEYS = {  # the key of a sentence of each set, German or English
    "bucc2018": "hallowelt",
    "xnli": "detestpremise",
    "pawsx": "detestc",
    "xsimpp": "ithas3wheels",
    "cls": "ichlaslachte",
    "marc": "desagt5",
    "mldoc": "nocheiner",
    "rcv2": "größezählt",
}


def test_decontamination_names_every_set_and_language_of_a_key(project, tmp_path):
    folders = {name: made.write_sets(tmp_path) / name for name in KEYS}
    entries = {
        name: {"path": str(folder), "languages": ["en" if name == "xsimpp" else "de"]}
        for name, folder in folders.items()
    }
    experiment = project.load(with_sets(entries, decontaminate={"against": list(KEYS)}))
    out = tmp_path / "keys.tsv"
    count = write_eval_keys("folded", eval_files(experiment, folders), out)
    *lines, _ = out.read_text().splitlines()  # the last is the checksum
    labels = dict(line.split("\t") for line in lines)
    assert len(labels) == count
    for name, key in KEYS.items():
        (code,) = experiment.evalsets[name].languages
        assert f"{name}/{code}" in labels[key].split(",")
    assert labels["größezählt"] == "mldoc/german,rcv2/german"  # its headline is in both
    assert not any("neverread" in key or "unlabeled" in key for key in labels)


def test_the_place_of_a_set_changes_no_hash_but_its_content_does(project, tmp_path):
    copy = made.write_sets(tmp_path) / "bucc2018"
    entry = {"bucc2018": {"path": str(copy), "languages": ["de"]}}
    value = with_sets(entry, decontaminate={"against": ["bucc2018"]})

    def hashes(value):
        return stage_hash(project.load(value), "evalkeys")

    assert hashes(edited(value, "evalsets.bucc2018.path", GONE)) == hashes(value)
    flores = with_sets({"flores200": {}}, decontaminate={"against": ["flores200"]})
    embedded = edited(flores, "sources.flores200", "embedded")
    flores = edited(flores, "sources.flores200", "x/flores200_dataset.tar.gz")
    assert hashes(embedded) == hashes(flores)
    assert hashes(edited(flores, "evalsets.flores200.dev", True)) != hashes(flores)


# --- the plan
PLANNED = """
evalsets:
  tatoeba: {version: v1}
  bucc2018: {version: v2018, languages: [de], path: BUCC}
  pawsx: {version: v1, languages: [de, en]}
  xnli: {version: v1, languages: [de]}
sources: {pawsx: MIRROR, tatoeba: MIRROR, opus: MIRROR}
decontaminate: {against: [tatoeba, bucc2018, pawsx]}
"""


@pytest.mark.slow
def test_the_workflow_plans_a_unit_once_and_uses_a_copy_in_place(tmp_path):
    bucc = made.write_files(tmp_path / "bucc", made.bucc() | made.bucc(part="sample"), strip=1)
    mirror = tmp_path / "mirror"
    for name in ("x-final.tar.gz", "tatoeba.deu-eng.deu", "tatoeba.deu-eng.eng"):
        write_lines(mirror / name, [])
    project = copy_project(tmp_path / "project")
    write_lines(project.folder / "nowhere/Toy/v1/moses/de-en.txt.zip", [])
    text = PLANNED.replace("BUCC", str(bucc)).replace("MIRROR", str(mirror))
    project.select("sets", MINIMAL | {"languages": ["en", "de"]} | yaml.safe_load(text))
    words = ("-n", "--printshellcmds", "data", "results/sets/text/evalkeys.tsv")
    output = project.snakemake(*words)
    assert f"--evalset pawsx --source={mirror} --code x-final" in output
    assert f"--evalset tatoeba --source={mirror} --code deu" in output
    assert "--evalset xnli --source= --code xnli --out data/evalsets/xnli/v1 " in output
    assert "xnli-mt" not in output  # what trains a classifier is fetched for a benchmark only
    assert output.count("rule fetch_evalset:") == 3
    assert "--evalset bucc2018 " not in output
    (inputs,) = re.findall(r"rule evalkeys:\n +input: (.*)", output)
    paths = {
        f"data/evalsets/{unit}.manifest.json" for unit in ("pawsx/v1/x-final", "tatoeba/v1/deu")
    }
    assert paths | {f"{bucc}/de-en/de-en.training.gold"} <= set(inputs.split(", "))
    assert "xnli" not in inputs
    assert f"bucc2018={bucc}" in output


def test_a_closed_set_may_be_embedded_if_the_demo_has_its_languages(project, tmp_path):
    def embedded(name, **entry):
        sources = {"sources": {name: "embedded"}, "languages": ["en", "de", "fr", "sw"]}
        return with_sets({name: entry}, **sources)

    message = project.error(embedded("xnli"))
    assert "evalsets.xnli.languages: the embedded demo has only en, de, fr, es, ru" in message
    assert message.endswith("found sw")
    evalset = project.load(embedded("mldoc")).evalsets["mldoc"]
    assert (evalset.embedded, evalset.path) == (True, "")
    message = project.error(embedded("mldoc", path=str(tmp_path / "gone")))
    assert "evalsets.mldoc.path" in message  # a copy has precedence


# --- the closed sets of the papers' experiments: commented out, each with a path to fill in
CLOSED = {"ems62": ["mldoc", "cls", "marc", "rcv2"], "lightweight": ["mldoc"]}
CLOSED["lightweight-released"] = CLOSED["lightweight"]
FOLDERS = {"mldoc": "reuters", "rcv2": "reuters", "cls": "cls", "marc": "marc"}
REUTERS = ["english", "german", "spanish", "french", "italian", "japanese", "russian", "chinese"]
EACH = [(experiment, name) for experiment, names in CLOSED.items() for name in names]


def write_copies(folder):
    """Write the files of each closed set that a plan looks for."""
    for language in REUTERS:
        for part in ("dev", "test", "train.1000"):
            index = folder / "reuters/mldoc-indices" / f"{language}.{part}"
            write_lines(index, ["REUTXX1-1"])
        corpus = "rcv1" if language == "english" else f"RCV2_Multilingual_Corpus/{language}"
        write_lines(folder / "reuters" / corpus / "REUTXX1" / "1.xml", ["<newsitem/>"])
    made.write_files(folder / "cls", made.cls(), strip=1)
    for code in ("de", "en", "es", "fr", "ja", "zh"):
        made.write_files(folder / "marc", made.marc(code))


def uncommented(experiment, names, folder):
    """A shipped experiment with the three commented lines of each set as settings."""
    text = (ROOT / "configs" / f"{experiment}.yaml").read_text()
    for name in names:
        text, entries = re.subn(rf"(?m)^( *)# ({name}: \{{.*)$", r"\1\2", text)
        text, listed = re.subn(rf"(?m)^( *)# ({name},)$", r"\1\2", text)
        assert (entries, listed) == (1, 2), name
        line = re.search(rf"(?m)^ *{name}: \{{.*$", text)[0]
        text = text.replace(line, line.replace("path: DIRECTORY", f"path: {folder(name)}"))
    return text


def loaded(root, experiment, text):
    (root / "configs").mkdir(exist_ok=True)
    (root / "configs" / f"{experiment}.yaml").write_text(text)
    site = load_site(ROOT / "config.yaml", {"experiment": experiment})
    return load_experiment(experiment, site, root / "configs")


@pytest.mark.parametrize(("experiment", "name"), EACH)
def test_each_closed_set_can_be_uncommented_alone_and_needs_its_folder(tmp_path, experiment, name):
    settings = loaded(tmp_path, experiment, uncommented(experiment, [], str))
    assert missing_evalsets(settings) == []
    assert name not in {*settings.evalsets, *settings.benchmarks}
    settings = loaded(tmp_path, experiment, uncommented(experiment, [name], lambda _: "DIRECTORY"))
    (line,) = missing_evalsets(settings)
    expected = "DIRECTORY is not a directory; expected DIRECTORY/"
    assert line.startswith(f"evalsets.{name}.path: {expected}")
    write_copies(tmp_path)
    text = uncommented(experiment, [name], lambda name: tmp_path / FOLDERS[name])
    settings = loaded(tmp_path, experiment, text)
    assert missing_evalsets(settings) == []
    assert name in settings.benchmarks
    assert name in settings.decontaminate.against  # kept out of training


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["ems62", "lightweight"])
def test_with_all_closed_sets_the_whole_experiment_is_planned(fresh, experiment):
    write_copies(fresh.folder / "copies")
    names = CLOSED[experiment]
    text = uncommented(experiment, names, lambda name: f"copies/{FOLDERS[name]}")
    (fresh.folder / f"configs/{experiment}.yaml").write_text(text)
    words = ("--printshellcmds", "--config", f"experiment={experiment}", "--", "all")
    plan = fresh.snakemake("-n", "--cores", "1", *words)
    shown = loaded(fresh.folder, experiment, text).shown
    for name in names:
        assert f"{name}=copies/{FOLDERS[name]}" in re.search(r"ems evalkeys .*", plan)[0]
        assert f"results/tables/{name}.tex" in plan
        scored = set(re.findall(rf"--system (\S+) --benchmark {name} ", plan))
        assert set(shown) <= scored, (name, scored)
