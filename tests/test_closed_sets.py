"""Laws of the closed sets in the papers' experiments: commented out, since nobody can download
them, and each a benchmark once its lines are uncommented and name a folder.
"""

import re

import pytest
from conftest import ROOT, planned
from made import evalsets as made
from made.corpora import write_lines

from ems.config.load import load_experiment, load_site
from ems.workflow.sources import missing_evalsets

CLOSED = {"ems62": ["mldoc", "cls", "marc", "rcv2"], "lightweight": ["mldoc"]}
CLOSED["lightweight-released"] = CLOSED["lightweight"]
FOLDERS = {"mldoc": "reuters", "rcv2": "reuters", "cls": "cls", "marc": "marc"}
REUTERS = ["english", "german", "spanish", "french", "italian", "japanese", "russian", "chinese"]
EACH = [(experiment, name) for experiment, names in CLOSED.items() for name in names]


def write_copies(folder):
    """A copy of each closed set as far as a plan looks: the names of its files."""
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
    """The text of a shipped experiment as its comments say: three lines for each set."""
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


@pytest.mark.parametrize("experiment", CLOSED)
def test_as_shipped_no_set_is_asked_for_that_cannot_be_downloaded(tmp_path, experiment):
    text = (ROOT / "configs" / f"{experiment}.yaml").read_text()
    settings = loaded(tmp_path, experiment, text)
    assert missing_evalsets(settings) == []
    assert not set(FOLDERS) & {*settings.evalsets, *settings.benchmarks}


@pytest.mark.parametrize(("experiment", "name"), EACH)
def test_each_can_be_uncommented_alone_and_without_its_folder_is_a_line(tmp_path, experiment, name):
    settings = loaded(tmp_path, experiment, uncommented(experiment, [name], lambda _: "DIRECTORY"))
    (line,) = missing_evalsets(settings)
    assert line.startswith(f"evalsets.{name}.path: DIRECTORY is no directory; expected DIRECTORY/")
    write_copies(tmp_path)
    text = uncommented(experiment, [name], lambda name: tmp_path / FOLDERS[name])
    settings = loaded(tmp_path, experiment, text)
    assert missing_evalsets(settings) == []
    assert name in settings.benchmarks
    assert name in settings.decontaminate.against  # kept out of training


@pytest.mark.parametrize("experiment", CLOSED)
def test_with_all_of_them_the_whole_experiment_is_planned(fresh, experiment):
    write_copies(fresh.folder / "copies")
    names = CLOSED[experiment]
    text = uncommented(experiment, names, lambda name: f"copies/{FOLDERS[name]}")
    (fresh.folder / f"configs/{experiment}.yaml").write_text(text)
    words = ("--printshellcmds", "--config", f"experiment={experiment}", "--", "all")
    plan = fresh.snakemake("-n", "--cores", "1", *words)
    settings = loaded(fresh.folder, experiment, text)
    others = set(settings.tables.ablation or []) - set(settings.shown)  # for Table XIV alone
    scored = {"tatoeba", "flores200", "mldoc"} & set(settings.benchmarks)
    expected = {f"{system}/{name}" for system in settings.shown for name in settings.benchmarks}
    expected |= {f"{system}/{name}" for system in others for name in scored}
    for study in (
        settings.tables.studies or {}
    ).values():  # each has MLDoc and Europarl, as they are
        rows = [row for row in study.rows.values() if study.columns and isinstance(row, dict)]
        named = [(row[of], of, ways) for row in rows for of, ways in study.columns.items()]
        expected |= {
            f"{name}-{code}/{of}"
            for name, of, ways in named
            for code in ("fr", "es")
            if f"en-{code}" in ways
        }
    assert planned(plan)["bench"] == len(expected)
    for name in names:
        assert f"{name}=copies/{FOLDERS[name]}" in re.search(r"ems evalkeys .*", plan)[0]
        assert f"results/tables/{name}.tex" in plan
        assert f"--benchmark {name} " in plan
