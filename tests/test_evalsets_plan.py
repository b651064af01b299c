"""Laws of the sets of an experiment: languages, copies, closed ones, and their sentences."""

import re

import pytest
import yaml
from conftest import copy_project
from made import evalsets as made
from made.corpora import write_flores, write_lines
from made.experiments import GONE, MINIMAL, SCHEMAS, Settings, edited

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


def test_all_of_a_set_are_its_published_languages(project):
    every = {name: {"languages": "all"} for name in ("bucc2018", "xnli", "pawsx", "paracrawl")}
    evalsets = project.load(with_sets(every)).evalsets
    assert list(map(len, (evalsets[name].languages for name in every))) == [4, 15, 7, 21]


OWN = [{"code": "xa", "tatoeba_v1": "deu"}, {"code": "xb", "tatoeba_v1": "deu"}]


@pytest.mark.parametrize("languages", ["experiment", "all", ["xa", "xb"]])
def test_two_languages_with_one_code_in_a_benchmark_are_an_error_and_none_is_dropped(
    project, languages
):
    value = edited(BASE, "languages", ["en", *OWN])
    value = edited(value, "evalsets.tatoeba.languages", languages)
    assert project.error(value).endswith(
        "evalsets.tatoeba.languages: xa and xb are both deu in the benchmark; give one of them "
        "another code under `languages`, or name it in evalsets.tatoeba.without"
    )
    chosen = project.load(edited(value, "evalsets.tatoeba.without", ["xb"]))
    assert chosen.evalsets["tatoeba"].languages["deu"] == "xa"


def test_a_language_of_the_table_gives_way_to_one_of_the_experiments_own(project):
    value = edited(BASE, "languages", ["en", OWN[0]])
    value = edited(value, "evalsets.tatoeba.languages", "all")
    languages = project.load(value).evalsets["tatoeba"].languages
    assert languages["deu"] == "xa"
    assert len(languages) == 112
    message = project.error(edited(value, "languages", ["en", "de", OWN[0]]))
    assert "de and xa are both deu in the benchmark" in message


# --- where they are


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "cls",
            "evalsets.cls: this set is closed (Amazon reviews, for research): ask for "
            "cls-acl10-unprocessed.tar.gz at https://zenodo.org/record/3251672; then set "
            "evalsets.cls.path to the DIRECTORY with it (or sources.cls to the one with the "
            "archive); expected DIRECTORY/en/books/train.review, DIRECTORY/en/books/test.review, "
            "DIRECTORY/en/dvd/train.review and 21 more",
        ),
        ("marc", "evalsets.marc: this set is withdrawn (Amazon, academic research only, not to"),
        ("mldoc", "set evalsets.mldoc.path to the DIRECTORY with it; expected DIRECTORY/mldoc-ind"),
        ("rcv2", "expected DIRECTORY/rcv1, DIRECTORY/RCV2_Multilingual_Corpus/german, DIRECTORY"),
    ],
)
def test_a_closed_set_without_a_copy_is_one_line_that_says_how_to_obtain_it(
    project, name, expected
):
    message = project.error(with_sets({name: {}}))
    assert expected in message
    assert benchmark(name).obtain in message


def test_all_that_is_missing_can_be_listed_without_an_error(project):
    value = with_sets({"cls": {}, "marc": {}, "xnli": {}})
    experiment = project.load(edited(value, "sources", {"cls": "x", "marc": "x"}))
    assert missing_evalsets(experiment) == []
    experiment.sources.clear()
    assert [line.partition(":")[0] for line in missing_evalsets(experiment)] == [
        "evalsets.cls",
        "evalsets.marc",
    ]


def test_a_copy_that_is_not_there_or_lacks_files_is_one_line(project, tmp_path):
    gone = tmp_path / "gone"
    message = project.error(with_sets({"bucc2018": {"path": str(gone)}}))
    assert message.endswith(
        f"evalsets.bucc2018.path: {gone} is no directory; expected {gone}/de-en/de-en.sample.de, "
        f"{gone}/de-en/de-en.sample.en, {gone}/de-en/de-en.sample.gold and 9 more"
    )
    here = made.write_files(tmp_path / "here", made.bucc() | made.bucc("fr"), strip=1)
    message = project.error(with_sets({"bucc2018": {"path": str(here)}}))
    assert "path: 6 of the 12 files expected are not there: " in message
    assert f"{here}/de-en/de-en.sample.de, {here}/de-en/de-en.sample.en" in message


def test_every_set_can_be_a_copy_and_its_files_are_used_in_place(project, tmp_path):
    write_flores(tmp_path, "eng_Latn", ["one"])
    for code in ("deu_Latn", "fra_Latn", "jpn_Jpan"):
        write_flores(tmp_path, code, ["eins"])
    folder = tmp_path / "flores200"
    value = with_sets({"flores200": {"path": str(folder)}}, decontaminate={"against": []})
    experiment = project.load(value)
    assert len(data_files(experiment, "flores200", folder)) == 4
    (folder / "devtest" / "deu_Latn.devtest").unlink()
    assert "evalsets.flores200.path: 1 of the 4 files" in project.error(value)


def test_a_copy_in_another_layout_is_found(project, tmp_path):
    for code in ("en", "de", "fr", "ja"):
        for split in ("dev", "test"):
            write_lines(tmp_path / "flat" / f"{split}-{code}.tsv", ["a\tb\t1"])
    experiment = project.load(with_sets({"pawsx": {"path": str(tmp_path / "flat")}}))
    files = data_files(experiment, "pawsx", tmp_path / "flat")
    assert files[0] == tmp_path / "flat" / "dev-en.tsv"
    assert all(path.is_file() for path in files)


def test_the_dev_part_of_flores_needs_a_source_that_has_it(project):
    value = with_sets({"flores200": {"dev": True}})
    message = project.error(value)
    assert (
        "evalsets.flores200.dev: only the official archive has the dev part; set sources" in message
    )
    archive = "https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz"
    experiment = project.load(edited(value, "sources.flores200", archive))
    assert unit_source(experiment, "flores200") == archive.rpartition("/")[0]
    (path,) = data_files(experiment, "flores200", project.root)
    assert path.name == "flores200_dataset.manifest.json"
    assert "dev/deu_Latn.dev" in str(set_files(experiment, "flores200", project.root))


PARACRAWL = {"decontaminate": {"against": ["paracrawl"]}}  # its sentences are drawn
DRAWN = "decontaminate.against.0: found 'paracrawl'; allowed values: bucc2018, cls, "
MISTAKES = [
    ({"sib200": {"dev": True}}, {}, "only of flores200"),
    ({"xsimpp": {"languages": ["de"]}}, {}, "xsimpp.languages: unknown language 'de'; allowed: en"),
    ({"paracrawl": {}}, PARACRAWL, DRAWN),
]


@pytest.mark.parametrize(("entries", "changes", "expected"), MISTAKES)
def test_what_a_set_cannot_do_is_one_line(project, entries, changes, expected):
    assert expected in project.error(with_sets(entries, **changes))


# --- their sentences


def test_every_set_of_the_schema_is_known_and_says_what_training_must_not_see():
    schema = SCHEMAS["experiment"]["$defs"]
    known = set(schema["Evalsets"]["properties"])
    assert known == set(sets())
    against = set(schema["Decontaminate"]["properties"]["against"]["items"]["enum"])
    assert against == known - {"paracrawl", "europarlxsr"}
    assert all(hasattr(module(name, "data"), "read_sides") for name in against)


@pytest.fixture
def copies(tmp_path):
    """A copy of each set."""
    return made.write_sets(tmp_path)


LANGUAGES = {"xsimpp": ["en"]}
TOLD = {  # a sentence of each, as a key: of German, or of English
    "bucc2018": "hallowelt",
    "xnli": "detestpremise",
    "pawsx": "detestc",
    "xsimpp": "ithas3wheels",
    "cls": "ichlaslachte",
    "marc": "desagt5",
    "mldoc": "nocheiner",
    "rcv2": "größezählt",
}


def test_decontamination_names_every_set_and_keeps_its_labels(project, copies):
    names = list(TOLD)
    entries = {
        name: {"path": str(copies / name), "languages": LANGUAGES.get(name, ["de"])}
        for name in names
    }
    value = with_sets(entries, decontaminate={"against": names})
    experiment = project.load(value)
    folders = {name: copies / name for name in names}
    out = copies / "keys.tsv"
    count = write_eval_keys("folded", eval_files(experiment, folders), out)
    *lines, _ = out.read_text().splitlines()  # the last is the checksum
    labels = dict(line.split("\t") for line in lines)
    assert len(labels) == count
    for name, key in TOLD.items():
        (code,) = experiment.evalsets[name].languages
        assert f"{name}/{code}" in labels[key].split(",")
    assert labels["größezählt"] == "mldoc/german,rcv2/german"  # its headline is in both
    assert not any("neverread" in key or "unlabeled" in key for key in labels)


def test_where_a_set_lies_changes_no_hash_but_what_is_in_it_does(project, copies):
    entry = {"bucc2018": {"path": str(copies / "bucc2018"), "languages": ["de"]}}
    value = with_sets(entry, decontaminate={"against": ["bucc2018"]})

    def hashes(value):
        return stage_hash(project.load(value), "evalkeys")

    before = hashes(value)
    assert hashes(edited(value, "evalsets.bucc2018.path", GONE)) == before
    assert hashes(edited(value, "evalsets.bucc2018.version", "v2")) != before
    assert hashes(edited(value, "decontaminate.against", ["tatoeba"])) != before
    more = edited(value, "evalsets.bucc2018", {"version": "v1", "languages": "all"})
    assert hashes(more) != before
    flores = with_sets({"flores200": {}}, decontaminate={"against": ["flores200"]})
    flores = edited(flores, "sources.flores200", "x/flores200_dataset.tar.gz")
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
    for path in (
        "data/evalsets/pawsx/v1/x-final.manifest.json",
        f"{bucc}/de-en/de-en.training.gold",
    ):
        assert path in inputs.split(", ")
    assert "data/evalsets/tatoeba/v1/deu.manifest.json" in inputs
    assert "xnli" not in inputs
    assert f"bucc2018={bucc}" in output


# --- sets that are embedded


def embedded(name, **entry):
    """An experiment with one embedded set."""
    return MINIMAL | {
        "languages": ["en", "de", "fr", "sw"],
        "sources": {name: "embedded"},
        "evalsets": {"tatoeba": {"version": "v1"}, name: {"version": "v1", **entry}},
    }


def test_a_language_that_the_demo_lacks_is_one_line_before_any_job(tmp_path):
    message = Settings(tmp_path).error(embedded("xnli"))
    assert "evalsets.xnli.languages: the embedded demo has only en, de, fr, es, ru" in message
    assert message.endswith("found sw")


def test_a_closed_set_may_be_embedded_and_a_copy_goes_before_it(tmp_path):
    project = Settings(tmp_path)
    evalset = project.load(embedded("mldoc")).evalsets["mldoc"]
    assert (evalset.embedded, evalset.path) == (True, "")
    message = project.error(embedded("mldoc", path=str(tmp_path / "gone")))
    assert "evalsets.mldoc.path" in message


def test_where_an_embedded_set_lies_changes_no_hash(tmp_path):
    project = Settings(tmp_path)
    value = embedded("sib200") | {"decontaminate": {"against": ["sib200"]}}
    value["languages"] = ["en", "de", "fr"]
    here = stage_hash(project.load(value), "evalkeys")
    assert stage_hash(project.load(value | {"sources": {"sib200": "x"}}), "evalkeys") == here
