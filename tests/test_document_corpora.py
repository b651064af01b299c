"""Laws of `kind: documents` in an experiment: what may be set, where files lie, what reruns; and
the workflow from the embedded documents to their shards."""

import json
import re

import pytest
import yaml
from conftest import ROOT, planned
from made.experiments import REAL, Settings, changed_jobs, edited, hashes

from ems.corpora.demo.grammar import LANGUAGES
from ems.corpora.demo.mirror import DOCUMENTS
from ems.corpora.demo.texts import LONGEST, SHORTEST, STORIES
from ems.corpora.monolingual import read_documents
from ems.text import wikipedia
from ems.text.normalise import folded_keys
from ems.text.segmenters.base import package
from ems.workflow.plan import plan

OWN = {"name": "Own", "version": "v1", "kind": "documents"}
SOURCES = {"documents": "texts", "wikipedia": "dumps"}
PARTS = {"Own": {"parts": {"train": 0.9, "validation": 0.1}}}
WIKIPEDIA = {"name": "Wikipedia", "version": "20260101", "kind": "documents"}
PAIRS = REAL["corpora"]  # what the systems learn from
VALUE = REAL | {"sources": SOURCES, "corpora": [OWN, WIKIPEDIA, *PAIRS]}


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, VALUE)


def corpora(*entries, **more):
    return VALUE | {"corpora": [*entries, *PAIRS]} | more


def test_documents_are_of_single_languages_english_too(project):
    own, wikipedia, _ = project.load().corpora
    assert own.pairs == wikipedia.pairs == ("en", "de", "ja")
    assert (own.source, wikipedia.source) == ("texts", "dumps")
    assert (own.dumped, wikipedia.dumped) == (False, True)
    chosen = OWN | {"languages": ["de", "ja"], "without": ["ja"], "codes": {"de": ["deu"]}}
    own, _ = project.load(corpora(chosen)).corpora
    assert own.pairs == ("de",)
    assert own.files("de") == ("deu",)
    own, _ = project.load(corpora(WIKIPEDIA | {"source": "mine"})).corpora
    assert not own.dumped


ALONE = VALUE | {
    "corpora": [OWN],
    "evalsets": {"tatoeba": {"version": "v1"}, "flores200": {"version": "v1"}},
    "benchmarks": ["flores200"],
    "objectives": {"xtr": {"weight": 0}, "contrastive": {"weight": 0}, "context": {"weight": 1}},
    "vocabularies": {"two": {"languages": ["ja", "de"]}},
    "systems": {"some": {"languages": ["de", "ja"]}, "own": {"vocabulary": "two"}},
}


def test_without_pairs_a_system_and_a_vocabulary_may_lack_english(project):
    experiment = project.load(ALONE)
    assert experiment.systems["some"].languages == ("de", "ja")
    assert experiment.systems["own"].languages == ("ja", "de")
    assert list(experiment.of_system("some").languages) == ["de", "ja"]


@pytest.mark.parametrize("key", ["systems.some", "vocabularies.two.languages"])
def test_with_pairs_alone_each_has_a_pair(project, key):
    parts = {"systems.some": {"vocabularies": {}}, "vocabularies.two.languages": {}}
    value = ALONE | parts[key] | {"corpora": PAIRS, "objectives": VALUE["objectives"]}
    value["systems"] = {"some": {"languages": ["de", "ja"]} if key == "systems.some" else {}}
    assert f"{key}: no corpus has a pair of" in project.error(value)


@pytest.mark.parametrize(
    ("entries", "splits", "message"),
    [
        ([OWN | {"max_pairs": 3}], {}, "corpora.0.max_pairs: a corpus of `kind: documents`"),
        ([OWN | {"fallback": True}], {}, "corpora.0.fallback: a corpus of `kind: documents`"),
        ([OWN | {"codes": "paper"}], {}, "corpora.0.codes: found paper, but EMS used no documents"),
        ([OWN | {"path": "a", "source": "b"}], {}, "corpora.0.path: set the source or the path"),
        ([OWN | {"without": ["en", "de", "ja"]}], {}, "corpora.0.without: no language is left"),
        ([OWN | {"max_documents": {"xx": 1}}], {}, "corpora.0.max_documents: unknown language"),
        ([OWN | {"part": "train"}], {}, "corpora.0.part: train, but splits does not say"),
        ([OWN | {"part": "x"}], PARTS, "corpora.0.part: found 'x'; allowed values"),
        ([OWN], PARTS, "corpora.0.part: this key is missing"),
        (
            [OWN | {"part": "train"}],
            {"Own": PARTS["Own"] | {"documents": "x.txt"}},
            "splits.Own.documents: a corpus of `kind: documents` is divided by parts alone",
        ),
        (
            [OWN | {"part": "train"}],
            {"Own": {"first": {"validation": 9}, "rest": "train"}},
            "splits.Own.first: a corpus of `kind: documents` is divided by parts alone",
        ),
        (
            [{"name": "Tatoeba", "version": "v2021-08-07", "path": "x"}],
            {},
            "corpora.0.path: a corpus of `kind: pairs` has no such key",
        ),
        ([OWN, OWN | {"path": "x"}], {}, "corpora: Own/v1 is listed twice"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_the_key(project, entries, splits, message):
    assert message in project.error(corpora(*entries, splits=splits))


def test_without_a_source_the_key_to_set_is_named(project):
    value = corpora(OWN, sources={"wikipedia": "dumps"})
    assert "corpora.0: set sources.documents to the location of Own" in project.error(value)


def test_files_of_documents_that_a_directory_lacks_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = Settings(tmp_path, VALUE)
    mine = OWN | {"name": "Mine", "path": "mine", "languages": ["de"]}
    project.write(corpora(OWN, WIKIPEDIA, mine), "mine")
    project.site(yaml.safe_load((ROOT / "config.yaml").read_text()) | {"experiment": "mine"})
    (tmp_path / "texts/Own/v1").mkdir(parents=True)
    (tmp_path / "texts/Own/v1/de.txt.gz").touch()
    lines = "\n".join(plan(root=tmp_path, elsewhere=True).sources.lines)
    assert "sources.documents: 2 of 3 files" in lines
    assert "texts/Own/v1/en.txt" in lines
    assert "de.txt.gz" not in lines
    assert "sources.wikipedia: dumps is not a directory" in lines
    assert "dumps/dewiki/20260101/dewiki-20260101-pages-articles-multistream.xml.bz2" in lines
    assert "corpora.2.path: mine is not a directory; expected mine/de.txt" in lines


def test_documents_change_the_jobs_that_read_them_and_no_other(project):
    before = hashes(project.load(VALUE))
    capped = changed_jobs(project, VALUE, edited(VALUE, "corpora.0.max_documents", {"de": 5}))
    assert {name for name in capped if "Own" in str(name)} == capped != set()
    assert len(capped) == 1
    moved = edited(VALUE, "corpora.0.source", "elsewhere")
    assert hashes(project.load(moved)) == before


# --- the demo


def test_each_story_of_the_demo_is_new_and_about_one_person(demo_mirror):
    sets = [path for path in demo_mirror.glob("tatoeba/*") if path.is_file()]
    known = {key for path in sets for key in folded_keys(path.read_text().splitlines())}
    texts = {}
    for language in LANGUAGES:
        path = demo_mirror / "documents" / DOCUMENTS / "v1" / f"{language}.txt"
        texts[language] = [
            [line.decode().strip() for line in document.lines] for document in read_documents(path)
        ]
        assert len(texts[language]) == STORIES
        lengths = [len(document) for document in texts[language]]
        assert SHORTEST <= min(lengths) <= max(lengths) <= LONGEST
        keys = folded_keys([line for document in texts[language] for line in document])
        assert len(set(keys)) == len(keys)
        assert not set(keys) & known
    for document in texts["en"]:
        people = [set(re.findall(r"\w+", line.lower())) for line in document]
        assert set.intersection(*people) - {"a", "the", "to", "is", "of", "in"}


# --- the workflow


DEMO = {"name": DOCUMENTS, "version": "v1", "kind": "documents"}


def test_documents_go_from_their_source_to_shards_and_nothing_is_made_twice(finished):
    tiny = yaml.safe_load((finished.folder / "configs/tiny.yaml").read_text())
    tiny["sources"]["documents"] = "embedded"
    tiny["splits"] = {DOCUMENTS: {"parts": {"train": 0.8, "validation": 0.2}}}
    tiny["corpora"].append(DEMO | {"part": "train", "max_documents": {"default": 100, "zh": 30}})
    tiny["validation"] = DEMO | {"part": "validation"}
    finished.select("documents", tiny)
    jobs = planned(finished.snakemake("-n", "--", "text"))
    assert jobs["fetch_text"] == 4
    assert jobs["shard"] == 3 + 4 + 4  # pairs, and two parts of documents
    finished.snakemake("--", "text")
    results = finished.folder / "results/documents"
    report = json.loads((results / "reports/decontamination.json").read_text())
    entries = {(e["corpus"], e["pair"]): e for e in report["corpora"] if "documents" in e}
    assert len(entries) == 8
    for (corpus, language), entry in entries.items():
        for counts in (entry, entry["documents"]):
            assert counts["read"] == counts["kept"] + sum(counts["removed"].values())
        folder = results / f"shards/shared/{corpus}/v1/{language}"
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["documents"] == entry["documents"]["kept"]
        assert manifest["pairs"] == entry["kept"]
    assert entries[f"{DOCUMENTS}+train", "zh"]["documents"]["kept"] == 30
    for language in ("en", "de", "zh", "ja"):
        parts = [entries[f"{DOCUMENTS}+{part}", language] for part in ("train", "validation")]
        assert sum(part["documents"]["read"] for part in parts) == STORIES
    index = str(results / "shards/shared/index.json")
    shown = finished.run("ems", "inspect", "--index", index, "--pair", "zh", "--row", "2").stdout
    assert f"corpus {DOCUMENTS}+train v1, language zh" in shown
    assert "document 0 of 30, its sentence 2 of" in shown
    assert f" of {DOCUMENTS}/v1/zh.txt" in shown
    costs = json.loads((results / f"costs/text/segment/{DOCUMENTS}+train-v1-zh.json").read_text())
    assert costs["stage"] == "segment"
    assert "Nothing to be done" in finished.snakemake("--", "text")
    finished.snakemake("--", "results/tables/corpora.tex", "results/tables/filters.tex")
    table = (finished.folder / "results/tables/corpora.csv").read_text()
    assert "zh (documents)" in table
    locked = finished.folder / f"data/documents/{DOCUMENTS}/v1/en.txt.lock.json"
    assert json.loads(locked.read_text())["documents"] == STORIES


def test_a_folder_of_documents_is_used_in_place(finished):
    tiny = yaml.safe_load((finished.folder / "configs/tiny.yaml").read_text())
    tiny["corpora"].append(OWN | {"path": "texts", "languages": ["en"]})
    finished.select("documents", tiny)
    out = "results/documents/text/segmented/Own/v1/en.tsv"
    with pytest.raises(pytest.fail.Exception, match=r"corpora\.1\.path: texts is not a directory"):
        finished.snakemake("-n", "--", out)
    (finished.folder / "texts").mkdir()
    (finished.folder / "texts/en.txt").write_text("Hello there.\nHow are you?\n")
    finished.snakemake("--", out)
    text = (finished.folder / out).read_text()
    assert text == "hello there .\t1\nhow are you ?\t2\n\n"


def test_what_wikipedia_needs_is_said_before_any_job(project, monkeypatch):
    monkeypatch.setattr(wikipedia, "NEEDS", (package("no_such_module"),))
    assert "Wikipedia needs the Python package `no_such_module`" in project.error(VALUE)
    assert project.load(corpora(OWN)).corpora[0].documents
