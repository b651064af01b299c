"""Laws of segmented documents and their shards: no document is cut, none crosses another."""

import json
from itertools import pairwise

import numpy as np
import pytest
from made.cli import Cli, records
from made.shards import contents, sentences, vocabulary
from made.text import of_languages
from made.train import read_clean, write_random

from ems.base.errors import Damaged, EmsError
from ems.shards.index import shards_in
from ems.shards.inspect import inspect_shards
from ems.shards.shard import Shard
from ems.shards.writer import write_shards
from ems.text import subwords
from ems.text.bulk import segment_tsv
from ems.text.subwords import languages_of, load_vocabulary, write_sample

SIZES = [2, 7, 3, 2, 40, 5, 2, 2, 9, 13, 4, 6, 2, 3]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A vocabulary and a segmented file of documents."""
    folder = tmp_path_factory.mktemp("documents")
    vocabulary(folder / "v.model", 200)
    write_random(folder / "en.tsv", SIZES, 1)
    return folder


def stored(folder):
    """The documents of some shards, by plain loops: (tokens, line) of each sentence."""
    found = []
    for shard in shards_in(folder):
        ids = sentences(shard, "en")
        lines = np.fromfile(shard / "lines", "<i8").tolist()
        bounds = np.fromfile(shard / "documents", "<i8").tolist()
        assert bounds[0] == 0
        assert bounds[-1] == len(ids) == len(lines)
        rows = list(zip(ids, lines, strict=True))
        found.append([rows[a:b] for a, b in pairwise(bounds)])
    return found


@pytest.mark.parametrize("piece", [1, 4, 10, 20, 1_000])
def test_shards_of_any_size_hold_the_same_whole_documents(made, tmp_path, piece):
    manifest = write_shards(made / "en.tsv", made / "v.model", tmp_path / "en", pairs=piece)
    processor = load_vocabulary(made / "v.model")
    expected = [
        [(processor.encode(text), line) for text, line in document]
        for document in read_clean(made / "en.tsv")
    ]
    shards = stored(tmp_path / "en")
    assert [document for shard in shards for document in shard] == expected
    assert (len(shards) > 1) == (piece < sum(SIZES))
    assert manifest["documents"] == len(SIZES)
    assert (manifest["pairs"], manifest["dropped"]) == (sum(SIZES), 0)
    assert manifest["languages"] == ["en"]


def test_a_sentence_without_tokens_goes_and_then_a_document_without_context(made, tmp_path):
    text = "cat\t1\nsees\t2\n\n\t4\nbirds\t5\n\nthe\t7\n\t8\ncat\t9\n\n \t11\n\t12\n\n"
    (tmp_path / "en.tsv").write_text(text)
    manifest = write_shards(tmp_path / "en.tsv", made / "v.model", tmp_path / "en")
    assert [[line for _, line in each] for each in stored(tmp_path / "en")[0]] == [[1, 2], [7, 9]]
    assert (manifest["documents"], manifest["pairs"], manifest["dropped"]) == (2, 4, 5)


def test_without_one_document_there_is_no_shard(made, tmp_path):
    (tmp_path / "en.tsv").write_text("cat\t1\n\n")
    with pytest.raises(EmsError, match=r"en\.tsv: no document"):
        write_shards(tmp_path / "en.tsv", made / "v.model", tmp_path / "en")
    assert not (tmp_path / "en").exists()


def test_words_do_not_depend_on_how_many_documents_are_encoded_at_once(made, tmp_path, monkeypatch):
    write_shards(made / "en.tsv", made / "v.model", tmp_path / "one")
    monkeypatch.setattr("ems.shards.writer.MANY", 1)
    monkeypatch.setattr(subwords, "KEPT", 1)
    write_shards(made / "en.tsv", made / "v.model", tmp_path / "many")
    assert contents(tmp_path / "one") == contents(tmp_path / "many")


def test_a_row_is_shown_with_its_document(made, tmp_path):
    write_shards(made / "en.tsv", made / "v.model", tmp_path / "en", pairs=10)
    third = read_clean(made / "en.tsv")[2]
    shown = inspect_shards(
        shards_in(tmp_path / "en"), "en", SIZES[0] + SIZES[1] + 1, made / "v.model"
    )
    assert "language en, shard 00001, row 1 of" in shown or "row 10 of" in shown
    assert "its sentence 1 of 3 " in shown
    assert f"line {third[1][1]:,} of the corpus" in shown
    assert f"en: {third[1][0]}" in shown


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("documents", [0, 5, 3], "expected its end above that"),
        ("documents", [1, 5, 9], "expected 0 as its first offset"),
        ("documents", [0, 2, 8], "expected 9, the number of ids, as its last offset"),
        ("documents", [0, 9], "expected 24 bytes by its manifest, found 16"),
    ],
)
def test_bounds_that_cannot_be_right_are_found(made, tmp_path, name, content, message):
    write_random(tmp_path / "en.tsv", [2, 7], 1)
    write_shards(tmp_path / "en.tsv", made / "v.model", tmp_path / "en")
    (shard,) = shards_in(tmp_path / "en")
    np.array(content, "<i8").tofile(shard / name)
    with pytest.raises(Damaged, match=message):
        _ = Shard(shard).documents


def test_a_manifest_of_one_language_without_documents_is_damaged(made, tmp_path):
    write_shards(made / "en.tsv", made / "v.model", tmp_path / "en")
    path = tmp_path / "en" / "00000" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["documents"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(Damaged, match="it has one language but no `documents`"):
        Shard(path.parent)


# --- segmentation and the sample


@pytest.mark.parametrize(("lines", "workers"), [(1_000, 1), (1, 1), (7, 2), (30, 2)])
def test_segmentation_keeps_the_end_of_each_document(tmp_path, lines, workers):
    source = write_random(tmp_path / "en.tsv", SIZES, 2)
    text = source.read_text().replace("cat", "Cat,")
    source.write_text(text)
    out = tmp_path / "out.tsv"
    count = segment_tsv(source, out, ("en",), ("sacremoses",), workers=workers, lines=lines)
    assert out.read_text() == text.replace("Cat,", "cat ,")
    assert count == sum(SIZES) + len(SIZES)


def test_the_sample_of_a_vocabulary_draws_sentences_of_pairs_and_documents(tmp_path):
    write_random(tmp_path / "en.tsv", SIZES, 3)
    (tmp_path / "de-en.tsv").write_text("katze\tcat\t1\n" * 50)
    experiment = of_languages("en", "de", vocabulary={"sample_lines": 1_000, "temperature": 1})
    out = tmp_path / "sample.txt"
    quota = write_sample(experiment, [tmp_path / "en.tsv", tmp_path / "de-en.tsv"], out)
    assert quota == {"en": sum(SIZES) + 50, "de": 50}
    documents = [text for each in read_clean(tmp_path / "en.tsv") for text, _ in each]
    assert out.read_text().splitlines() == documents + ["katze", "cat"] * 50
    assert languages_of(out).read_text().split() == ["en"] * len(documents) + ["de", "en"] * 50


def test_lost_lines_of_documents_are_found_by_the_report_beside_them(made, tmp_path):
    clean = tmp_path / "text/clean/Own/v1"
    source = write_random(clean / "en.tsv", [2, 3], 1)
    counts = {"read": 5, "removed": {}, "kept": 5}
    report = counts | {"documents": {"read": 2, "removed": {}, "kept": 2}}
    (clean / "en.json").write_text(json.dumps(report))
    write_shards(source, made / "v.model", tmp_path / "en")
    source.write_text(source.read_text().removesuffix("\n"))
    with pytest.raises(Damaged, match="expected 7 lines, found 6"):
        write_shards(source, made / "v.model", tmp_path / "en")


# --- killed


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_in_the_middle_the_rest_is_done_and_the_bytes_are_the_same(tmp_path, workers):
    ems, state = Cli(tmp_path), tmp_path / "state"
    source = write_random(tmp_path / "en.tsv", [5] * 1_000, 1)
    model = vocabulary(tmp_path / "v.model", 200)
    job = ("shards", "--source", source, "--vocabulary", model, "--state", state)
    job += ("--piece-lines", "200")
    ems(*job, "--out", tmp_path / "whole")
    out = tmp_path / "out"
    ems.kill_once(lambda: records(state) >= 3, *job, "--out", out, "--workers", workers)
    assert not out.exists()
    lines = ems(*job, "--out", out)
    assert any("resumed, " in line for line in lines)
    assert contents(out) == contents(tmp_path / "whole")
    assert not state.exists()
