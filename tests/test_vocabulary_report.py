"""Laws of the vocabulary report and of the tables of cleaning: what is counted adds up."""

import json
import random
from functools import partial
from types import SimpleNamespace

import pytest
from made.tables import csv_rows, demo_report, tex_line, write_report

from ems.base.batches import batched
from ems.base.errors import EmsError
from ems.config.text import VocabularySettings
from ems.tables.corpora import write_filters_table, write_vocabulary_table
from ems.text import vocabulary_report
from ems.text.subwords import (
    UNK,
    languages_of,
    load_vocabulary,
    train_vocabulary,
    write_sample,
)
from ems.text.vocabulary_report import script_of, write_vocabulary_report

LETTERS = {"en": "abcdefgh", "ja": "かきくけこさしす", "ru": "абвгдежз"}
PAIRS = {"en-ja": 300, "en-ru": 200}


SETTINGS = {"sample_lines": 600, "temperature": 1, "size": 150, "character_coverage": 0.998}


def made_of(settings):
    """An experiment with these settings of the vocabulary."""
    vocabulary = VocabularySettings(**settings)
    return SimpleNamespace(vocabulary=vocabulary, seed=1, languages=list(LETTERS))


def sentence(draw, code):
    words = ["".join(draw.choices(LETTERS[code], k=draw.randint(1, 4))) for _ in range(5)]
    return " ".join(words)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A sample of three languages with its vocabulary; a rare letter of Russian has no piece."""
    folder, draw = tmp_path_factory.mktemp("world"), random.Random(1)
    sources = []
    for pair, count in PAIRS.items():
        rows = []
        for at in range(count):
            sides = [sentence(draw, code) for code in pair.split("-")]
            sides[1] += " ѭ ѫ" if pair == "en-ru" and at % 40 == 0 else ""
            rows.append("\t".join([*sides, str(at)]) + "\n")
        path = folder / f"{pair}.tsv"
        path.write_text("".join(rows), encoding="utf-8")
        sources.append(path)
    experiment = made_of(SETTINGS)
    quota = write_sample(experiment, sources, folder / "sample.txt")
    train_vocabulary(experiment, folder / "sample.txt", folder / "v.model")
    return SimpleNamespace(folder=folder, quota=quota, experiment=experiment)


def report_of(world, out):
    return write_vocabulary_report(world.folder / "v.model", world.folder / "sample.txt", out)


def lines_of(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_each_line_of_the_sample_is_labelled_with_its_language(world):
    texts = lines_of(world.folder / "sample.txt")
    codes = lines_of(languages_of(world.folder / "sample.txt"))
    assert len(texts) == len(codes) == 600
    assert {code: codes.count(code) for code in LETTERS} == world.quota
    for code, text in zip(codes, texts, strict=True):
        assert set(text) - set(" ѭѫ") <= set(LETTERS[code])


def test_the_report_is_what_a_loop_over_the_sample_counts(world, tmp_path):
    report = report_of(world, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == report
    vocabulary = load_vocabulary(world.folder / "v.model")
    expected = {}
    texts = lines_of(world.folder / "sample.txt")
    codes = lines_of(languages_of(world.folder / "sample.txt"))
    for code, text in zip(codes, texts, strict=True):
        row = expected.setdefault(code, {"lines": 0, "characters": 0, "tokens": 0, "unknown": 0})
        ids = vocabulary.encode(text)
        row["lines"] += 1
        row["characters"] += sum(not c.isspace() for c in text)
        row["tokens"] += len(ids)
        row["unknown"] += sum(token == UNK for token in ids)
    assert report["languages"] == expected
    assert expected["ru"]["unknown"] > 0 == expected["en"]["unknown"]
    assert report["pieces"] == 150 == sum(report["scripts"].values())
    assert report["scripts"]["control"] == 6
    assert set(report["scripts"]) == {"control", "Latin", "Hiragana", "Cyrillic", "other"}


def test_with_byte_fallback_no_token_is_unknown_and_every_text_comes_back(world, tmp_path):
    experiment = made_of({**SETTINGS, "size": 400, "byte_fallback": True})
    train_vocabulary(experiment, world.folder / "sample.txt", tmp_path / "b.model")
    report = write_vocabulary_report(
        tmp_path / "b.model", world.folder / "sample.txt", tmp_path / "r.json"
    )
    assert report["scripts"]["bytes"] == 256
    assert not any(row["unknown"] for row in report["languages"].values())
    vocabulary = load_vocabulary(tmp_path / "b.model")
    assert vocabulary.decode(vocabulary.encode("ab 𠮷 ѭ")) == "ab 𠮷 ѭ"


def test_a_language_gives_so_many_lines_at_most(world, tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary_report, "LINES", 50)
    monkeypatch.setattr(vocabulary_report, "batched", partial(batched, size=7))
    report = report_of(world, tmp_path / "r.json")
    assert {row["lines"] for row in report["languages"].values()} == {50}


def test_a_sample_whose_labels_do_not_fit_is_an_error(world, tmp_path):
    sample = tmp_path / "sample.txt"
    sample.write_bytes((world.folder / "sample.txt").read_bytes())
    languages_of(sample).write_text("en\n" * 599)
    with pytest.raises(EmsError, match=r"sample\.txt: 600 lines, but .*sample\.languages has 599"):
        write_vocabulary_report(world.folder / "v.model", sample, tmp_path / "r.json")


SCRIPTS = {
    **{"▁the": "Latin", "—a": "Latin", "▁ы": "Cyrillic", "の": "Hiragana", "ー": "Katakana"},
    **{"中": "Han", "々": "Han", "हि": "Devanagari", "▁्": "Devanagari", "한": "Hangul"},
    **{"▁3.1": "other", "▁": "other"},
}


def test_a_piece_belongs_to_the_script_of_its_first_letter():
    assert {piece: script_of(piece) for piece in SCRIPTS} == SCRIPTS


# --- the tables


def test_the_table_shows_rates_by_language_and_pieces_by_script(world, tmp_path):
    report = report_of(world, tmp_path / "r.json")
    write_vocabulary_table([tmp_path / "r.json"], tmp_path / "vocabulary.tex")
    rows = csv_rows(tmp_path / "vocabulary")
    assert list(rows)[:3] == ["ja", "ru", "en"]  # Table I has no English
    russian = report["languages"]["ru"]
    assert list(rows["ru"].values())[1:] == [
        str(russian["lines"]),
        f"{100 * russian['unknown'] / russian['tokens']:.3f}",
        f"{russian['tokens'] / russian['characters']:.3f}",
        f"{russian['tokens'] / russian['lines']:.3f}",
        "",
    ]
    scripts = {name: int(row["Pieces"]) for name, row in rows.items() if row["Pieces"]}
    labels = {"control": "control symbols", "other": "no letter"}
    names = {name: labels.get(name, f"{name} script") for name in report["scripts"]}
    assert scripts == {names[name]: count for name, count in report["scripts"].items()}
    assert "150 pieces" in (tmp_path / "vocabulary.md").read_text()


def test_several_vocabularies_stand_below_each_other_under_their_names(tmp_path):
    counts = {"lines": 10, "characters": 100, "tokens": 20, "unknown": 1}
    for code, latin in (("fr", 300), ("de", 200)):
        scripts, languages = {"Latin": latin, "control": 5}, {"en": counts, code: counts}
        report = {"pieces": latin + 5, "scripts": scripts, "languages": languages}
        (tmp_path / f"{code}.json").write_text(json.dumps(report))
    reports = [tmp_path / "fr.json", tmp_path / "de.json"]
    write_vocabulary_table(reports, tmp_path / "v.tex")
    rows = csv_rows(tmp_path / "v.tex")
    names = ["fr: fr", "fr: en", "fr: Latin script", "fr: control symbols"]
    assert list(rows) == [*names, *(name.replace("fr", "de") for name in names)]
    assert [rows[f"{code}: Latin script"]["Pieces"] for code in ("fr", "de")] == ["300", "200"]
    assert "(fr: 305 pieces, de: 205 pieces)" in (tmp_path / "v.md").read_text()
    assert (tmp_path / "v.tex").read_text().count(r"\midrule") == 1 + 3


SPOIL = {
    **{
        key: (lambda report, key=key: report.pop(key), f"expected .* under `{key}`, found nothing")
        for key in ("pieces", "scripts", "languages")
    },
    "sum": (
        lambda report: report["scripts"].update(Latin=report["scripts"]["Latin"] + 1),
        "the scripts have 151 pieces, the vocabulary 150",
    ),
}


@pytest.mark.parametrize("spoil", SPOIL)
def test_a_report_that_lacks_something_or_does_not_add_up_is_an_error(world, tmp_path, spoil):
    report = report_of(world, tmp_path / "r.json")
    change, message = SPOIL[spoil]
    change(report)
    (tmp_path / "r.json").write_text(json.dumps(report))
    with pytest.raises(EmsError, match=rf"r\.json: {message}"):
        write_vocabulary_table([tmp_path / "r.json"], tmp_path / "t.tex")


def test_the_filters_table_adds_up_in_every_row(tmp_path):
    path = demo_report(tmp_path / "report.json")
    write_filters_table(path, tmp_path / "filters.tex")
    rows = csv_rows(tmp_path / "filters")
    for row in rows.values():
        _, _, read, *removed, kept = row.values()
        assert int(read) == int(kept) + sum(int(count or 0) for count in removed)
    assert list(rows["Total"]) == ["Corpus", "Role", "Read", "Cap", "Evaluation", "odd", "Kept"]
    assert rows["Total"]["Read"] == "21670"


def test_a_filter_that_was_off_is_a_dash_and_one_that_found_nothing_is_zero(tmp_path):
    reasons = {"cap": 0, "both_empty": 1, "one_empty": 2, "evaluation": 3}
    entries = [
        ("A", "train", "de-en", 100, {**reasons, "duplicates": 0}, {}),
        ("B", "validation", "de-en", 50, reasons, {}),
    ]
    write_filters_table(write_report(tmp_path / "r.json", entries), tmp_path / "filters.tex")
    assert tex_line(tmp_path / "filters", "A v1")[-2:] == ["0", "94"]
    assert tex_line(tmp_path / "filters", "B v1")[-2:] == ["--", "44"]
