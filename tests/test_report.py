"""The page about an experiment: it says what the files say, on its own, and examples are real."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT
from made.browser import DESKTOP, PHONE, findings
from made.scores import row, write_file, write_flores, write_scores

from ems.bench.scores import packed, read_score_file
from ems.commands.cli import main

LANGUAGES = {"deu": "de", "cmn": "zh", "jpn": "ja"}
P1 = {"ems": (80.0, 60.0, 70.0), "untrained": (5.0, 4.0, 3.0), "char-ngram": (30.0, 1.0, 2.0)}
EXAMPLE = {"language": "de", "query": "Ja <b>.", "answer": "No.", "cosine": 0.9}


class Page(HTMLParser):
    """The text of a page without its style, its tags, and the values of attributes."""

    def __init__(self, path):
        super().__init__()
        self.words, self.tags, self.attributes, self.skipped = [], [], [], False
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.skipped = tag == "style"

    def handle_endtag(self, tag):
        self.skipped = False

    def handle_data(self, data):
        self.words += [] if self.skipped else [data]

    def links(self):
        return [value for name, value in self.attributes if name in ("href", "src")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project with score files of `demo` on Tatoeba, as if it had run."""
    for name in ("configs", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copyfile(ROOT / "config.yaml", tmp_path / "config.yaml")
    monkeypatch.chdir(tmp_path)
    for system, values in P1.items():
        write_scores(
            Path("results/demo/scores"),
            system,
            dict(zip(LANGUAGES, values, strict=True)),
            LANGUAGES,
        )
    return tmp_path


def report(*words, out="results/report.html"):
    assert main(["report", "--experiment", "demo", *words, "--out", out]) == 0
    return Page(Path(out))


def test_the_page_stands_alone(folder):
    page = report()
    assert "script" not in page.tags
    assert not re.search(r"(src|href)=\"?(https?:)?//|@import|url\(", page.html)
    ids = {value for name, value in page.attributes if name == "id"}
    assert {link[1:] for link in page.links() if link.startswith("#")} <= ids


def test_the_page_begins_with_the_best_system_and_the_best_baseline(folder):
    text = report().text
    assert "The best system, ems, has 70.0 % P@1 on Tatoeba" in text
    assert "the best baseline, char-ngram, has 11.0 %" in text
    assert "P@1, 3 languages" in text


def test_with_intervals_only_a_significant_best_has_a_colour(folder):
    assert report().html.count('class="best"') == 1
    path = Path("configs/demo.yaml")
    path.write_text(path.read_text().replace("tables: {", "tables: {intervals: true, "))
    page = report()  # no hits, so no test
    assert 'class="best"' not in page.html
    assert "better than every other system (p below 0.05" in page.text
    for count, system in zip((900, 100, 880), P1, strict=True):
        hits = np.arange(1000) < count
        rows = [row("deu", "en", count / 10, hits=packed(hits))]
        rows.append(row("en", "deu", count / 10, hits=packed(hits)))
        write_file(Path("results/demo/scores"), system, "tatoeba", "P@1", rows, {"deu": "de"})
    page = report()
    assert '<span class="best">90.0</span>' in page.html
    assert re.search(r"90\.0 ± 1\.[89]", page.text)


def test_a_mean_counts_no_language_that_was_not_trained_on(folder):
    values = {"deu": 80.0, "cmn": 60.0, "jpn": 70.0, "ita": 0.0}
    languages = LANGUAGES | {"ita": "und"}
    write_scores(Path("results/demo/scores"), "ems", values, languages)
    assert "ems, has 70.0 % P@1" in report().text


def test_languages_stand_from_the_weakest_to_the_strongest(folder):
    page = report()
    section = page.text.partition("By language")[2]
    places = [section.index(f"{name} {code}") for name, code in ORDER]
    assert places == sorted(places)
    assert "Weakest: Chinese 60.0, Japanese 70.0, German 80.0" in section


ORDER = [("Chinese", "zh"), ("Japanese", "ja"), ("German", "de")]


def test_a_map_has_numbers_and_a_scale_of_its_own(folder):
    write_flores(Path("results/demo/scores"), "ems", ["en", "de", "zh"], lambda *pair: 91.0)
    text = report().text
    assert "FLORES-200: P@1. Weakest: English 91.0, German 91.0, Chinese 91.0" in text
    section = text.partition("From every language")[2]
    assert section.split().count("91") == 6
    assert "the colours go from 90 to 100" in section


def test_systems_may_be_compared_alone(folder):
    text = report("--compare", "untrained", "char-ngram").text
    assert "char-ngram" in text
    assert "ems," not in text
    assert "30.0" not in text.partition("By language")[0].partition("Scores")[0]


def test_two_experiments_share_a_page(folder):
    text = (folder / "configs/demo.yaml").read_text()
    (folder / "configs/other.yaml").write_text(text)
    shutil.copytree("results/demo", "results/other")
    page = report("--compare", "demo", "other", out="results/compared.html")
    assert "demo: ems" in page.text
    assert "other: char-ngram" in page.text
    assert page.html.startswith("<!doctype html>")


def test_scores_of_other_data_are_left_out_and_named(folder):
    write_scores(Path("results/demo/scores"), "ems", {"deu": 80.0}, LANGUAGES, data_sha256="e" * 64)
    write_flores(Path("results/demo/scores"), "ems", ["en", "de"])
    text = report().text
    assert "Left out: Tatoeba: the tatoeba scores are of different data" in text


def test_without_scores_the_error_names_the_folder(folder, capsys):
    shutil.rmtree("results/demo/scores")
    assert main(["report", "--experiment", "demo", "--out", "page.html"]) == 1
    assert "results/demo/scores: expected score files, found none" in capsys.readouterr().err
    assert not Path("page.html").exists()


def test_a_damaged_score_file_is_an_error(folder, capsys):
    Path("results/demo/scores/ems/tatoeba.json").write_text("{}")
    assert main(["report", "--experiment", "demo", "--out", "page.html"]) == 1
    assert "results/demo/scores/ems/tatoeba.json" in capsys.readouterr().err


def test_examples_are_text_never_markup(folder):
    example = EXAMPLE | {"translation": "Yes.", "expected": 0.8}
    place = Path("results/demo/report/examples.json")
    place.parent.mkdir()
    place.write_text(json.dumps({"system": "ems", "benchmarks": {"tatoeba": [example]}}))
    page = report()
    assert "Ja &lt;b&gt;." in page.html
    assert "wrong , German, cosine 0.90. The translation has 0.80: Yes." in page.text


def test_links_lead_to_the_files_of_the_run(folder):
    made = Path("results/demo/tables/tatoeba.csv")
    made.parent.mkdir()
    made.write_text("")
    for place in ("results/report.html", "results/demo/report/report.html"):
        links = [link for link in report(out=place).links() if link.endswith(".csv")]
        assert [(Path(place).parent / link).resolve() for link in links] == [made.resolve()]


# --- examples


class Letters:
    """An encoder that counts letters: sentences with the same letters are the same to it."""

    def encode(self, lines, language, what=""):
        vectors = np.array([[line.lower().count(letter) for letter in "abcde"] for line in lines])
        return vectors.astype(np.float32) + 0.01


def test_examples_are_found_by_search_and_marked_right_or_wrong(tmp_path, monkeypatch):
    from ems.bench import examples as module

    foreign = ["aa b", "cc d", "ee", "ab ab ab"]
    english = ["a a b", "c c d", "b b b", "e e e"]
    monkeypatch.setattr(module, "read_bitext", lambda *_: [foreign, english])
    monkeypatch.setattr(module, "Task", fake_task)
    hits = packed(np.array([True, True, False, False]))
    rows = [row("deu", "en", 50.0, 4, hits=hits), row("en", "deu", 50.0, 4, hits=hits)]
    path = write_file(tmp_path, "ems", "tatoeba", "P@1", rows, {"deu": "de"})
    module.write_examples(None, [path], lambda name: Letters(), {}, tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["system"] == "ems"
    right, wrong = found["benchmarks"]["tatoeba"]
    assert right["answer"] == right["translation"] == english[foreign.index(right["query"])]
    assert wrong["query"] == "ee"
    assert (wrong["answer"], wrong["translation"]) == ("e e e", "b b b")
    assert wrong["cosine"] > wrong["expected"]


def fake_task(encoder, experiment, system, benchmark, folders):
    def vectors(lines, language, where):
        own = encoder.encode(lines, language)
        return own / np.linalg.norm(own, axis=1, keepdims=True)

    return SimpleNamespace(
        benchmark=benchmark, experiment=experiment, folder=None, languages={"deu": "de"},
        trained={"deu": "de"}, vectors=vectors,
    )  # fmt: skip


def test_examples_go_from_the_weakest_language_to_the_strongest(tmp_path):
    from ems.bench.examples import LANGUAGES as COUNT
    from ems.bench.examples import _from_weak_to_strong

    values = {f"l{number:02}": float(number) for number in range(1, 21)}
    file = read_score_file(write_scores(tmp_path, "ems", values))
    assert _from_weak_to_strong(file, values) == ["l01", "l06", "l11", "l15", "l20"][:COUNT]


def test_without_a_benchmark_of_translations_there_are_no_examples(tmp_path):
    from ems.bench.examples import write_examples

    made = write_examples(None, [], lambda name: None, {}, tmp_path / "out.json")
    assert (made.system, made.benchmarks) == ("", {})


@pytest.mark.slow
def test_the_workflow_makes_the_page_with_examples(tiny_run):
    page = Page(tiny_run.folder / "results/report.html")
    examples = json.loads((tiny_run.folder / "results/tiny/report/examples.json").read_text())
    assert examples["system"] == "ems"
    for example in examples["benchmarks"]["tatoeba"]:
        assert example["query"] in page.text
    assert len(page.html) < 3_000_000
    for link in page.links():
        if not link.startswith(("#", "data:")):
            assert (tiny_run.folder / "results" / link).is_file(), link


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_page_can_be_read_by_all(folder, browser, dark, width):
    write_flores(Path("results/demo/scores"), "ems", ["en", "de", "zh", "ja"])
    report()
    assert findings(browser, Path("results/report.html"), dark, width) == []


def test_a_page_of_62_languages_opens_at_once(folder, browser):
    """Small enough to send: below 3 MB with 3,782 directions."""
    codes = [f"{first}{second}" for first in "abcdefgh" for second in "qrstuvwx"][:62]
    write_flores(Path("results/demo/scores"), "ems", codes)
    assert len(report().html) < 1_000_000
    assert findings(browser, Path("results/report.html"), width=PHONE) == []
