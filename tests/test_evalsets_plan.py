"""Evaluation sets of an experiment: languages, copies, closed sets, sentences, the plan."""

import re

import pytest
import yaml
from conftest import ROOT, copy_project
from made import evalsets as made
from made import golden
from made.corpora import write_lines
from made.experiments import GONE, MINIMAL, SCHEMAS, SETS, Settings, edited

from ems.config.load import load_experiment, load_site
from ems.config.plugins import module, sets
from ems.config.stages import stage_hash
from ems.corpora.evalsets.sets import data_files, set_files, unit_source
from ems.text.evalkeys import eval_files, write_eval_keys
from ems.workflow.sources import missing_evalsets


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, SETS)


def with_sets(entries, **changes):
    """An experiment with these sets besides Tatoeba."""
    entries = {name: {"version": "v1", **entry} for name, entry in entries.items()}
    return SETS | {"evalsets": SETS["evalsets"] | entries} | changes


# --- copies and sources
def test_a_copy_is_used_in_place_and_may_have_another_layout(project, tmp_path):
    for code in ("en", "de", "fr", "ja"):
        for split in ("dev", "test"):
            write_lines(tmp_path / "flat" / f"{split}-{code}.tsv", ["a\tb\t1"])
    experiment = project.load(with_sets({"pawsx": {"path": str(tmp_path / "flat")}}))
    files = data_files(experiment, "pawsx", tmp_path / "flat")
    assert files[0] == tmp_path / "flat" / "dev-en.tsv"
    assert len(files) == 8
    assert all(path.is_file() for path in files)
    files[-1].unlink()
    assert f"path: 1 of 8 files not found: {files[-1]}" in project.error()


def test_the_dev_part_of_flores_needs_a_source_that_has_it(project):
    value = with_sets({"flores200": {"dev": True}})
    archive = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"
    experiment = project.load(edited(value, "sources.flores200", archive))
    assert unit_source(experiment, "flores200") == archive.rpartition("/")[0]
    (path,) = data_files(experiment, "flores200", project.root)
    assert path.name == "flores200_dataset.manifest.json"
    assert "dev/deu_Latn.dev" in str(set_files(experiment, "flores200", project.root))


# --- their sentences
def test_every_set_of_the_schema_is_known_and_has_sentences_to_decontaminate():
    schema = SCHEMAS["experiment"]["$defs"]
    known = set(schema["Evalsets"]["properties"])
    assert known == set(sets())
    against = set(schema["Decontaminate"]["properties"]["against"]["items"]["enum"])
    assert against == known - {"paracrawl", "europarlxsr"}
    assert all(hasattr(module(name, "data"), "read_sides") for name in against)


def test_decontamination_names_every_set_and_language_of_a_key(project, tmp_path):
    names = ("bucc2018", "cls", "marc", "mldoc", "pawsx", "rcv2", "xnli", "xsimpp")
    copies = made.write_sets(tmp_path / "sets")
    entries = {name: {"path": f"{copies}/{name}", "languages": ["de"]} for name in names}
    entries["xsimpp"]["languages"] = ["en"]
    experiment = project.load(with_sets(entries, decontaminate={"against": list(names)}))
    files = eval_files(experiment, {name: copies / name for name in names})
    assert write_eval_keys("folded", files, tmp_path / "keys.tsv") == 56
    golden.check("evalsets_keys.tsv", (tmp_path / "keys.tsv").read_text())


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
    paths = {f"results/sets/fetched/evalsets/{name}/v1/units.json" for name in ("pawsx", "tatoeba")}
    assert paths | {f"{bucc}/de-en/de-en.training.gold"} <= set(inputs.split(", "))
    assert "xnli" not in inputs
    assert f"bucc2018={bucc}" in output


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
def test_with_all_closed_sets_the_whole_experiment_is_planned(fresh):
    write_copies(fresh.folder / "copies")
    experiment, names = "ems62", CLOSED["ems62"]
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
