"""Laws of aligned documents: translations pair up whatever their names and boilerplate, each
document once, and files without text are an error or left out."""

import gzip
from contextlib import chdir
from pathlib import Path
from random import Random

import numpy as np
import pytest
from made.cli import Cli
from made.corpora import translations, write_lines
from made.models import write_model

from ems.base.errors import EmsError
from ems.use import align_documents as documents
from ems.use.align_documents import DocumentFolder, align_documents
from ems.use.encoder import Encoder

WORDS = [item["en"] for item in translations(400, ["en"], seed=5, most=8)]
MENU = WORDS[300:360]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents") / "model"
    sizes = {"layers": 0, "table": 24, "ngrams": 500}
    return write_model(folder, ["en"], WORDS, sizes=sizes)


@pytest.fixture(scope="module")
def encoder(model):
    encoder = Encoder(model)
    assert encoder.is_static
    return encoder


@pytest.fixture
def folders(tmp_path):
    """Two folders of 24 documents; in a translation the last word of each sentence is missing."""
    for number in range(24):
        lines = WORDS[12 * number : 12 * (number + 1)]
        write(tmp_path / "a" / f"{number:02}.txt", lines)
        write(tmp_path / "b" / f"{number:02}.txt", [line.rpartition(" ")[0] for line in lines])
    return tmp_path


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, lines)


def aligned(encoder, parent, skip=False, **options):
    """The pairs of the folders a and b as (score, name, name)."""
    sides = DocumentFolder(parent / "a", skip=skip), DocumentFolder(parent / "b", skip=skip)
    align_documents(encoder, sides, parent / "pairs.tsv", **options)
    rows = [row.split("\t") for row in (parent / "pairs.tsv").read_text().splitlines()]
    return [
        (float(score), one.removeprefix(f"{parent}/a/"), other.removeprefix(f"{parent}/b/"))
        for score, one, other in rows
    ]


def names(pairs):
    return {pair[1:] for pair in pairs}


def test_translations_pair_up_each_document_once_and_the_best_first(encoder, folders):
    pairs = aligned(encoder, folders)
    assert names(pairs) == {(f"{n:02}.txt", f"{n:02}.txt") for n in range(24)}
    assert len(pairs) == 24
    scores = [score for score, *_ in pairs]
    assert scores == sorted(scores, reverse=True)
    assert names(aligned(encoder, folders, threshold=scores[9])) == names(pairs[:10])
    (folders / "b" / "03.txt").unlink()
    targets = [other for *_, other in aligned(encoder, folders)]
    assert len(targets) == len({*targets}) == 23


def test_other_names_folders_and_forms_change_no_pair(encoder, folders):
    before = aligned(encoder, folders)
    order = [*range(24)]
    Random(3).shuffle(order)
    moved = {f"{n:02}.txt": f"deep/{place:02}.gz" for n, place in enumerate(order)}
    for name, other in moved.items():
        (folders / "b" / "deep").mkdir(exist_ok=True)
        content = (folders / "b" / name).read_bytes()
        (folders / "b" / other).write_bytes(gzip.compress(content))
        (folders / "b" / name).unlink()
    after = aligned(encoder, folders)
    assert names(after) == {(one, moved[other]) for one, other in names(before)}
    np.testing.assert_allclose([pair[0] for pair in after], [pair[0] for pair in before])


def test_boilerplate_changes_no_pair(encoder, folders):
    before = names(aligned(encoder, folders))
    draw = Random(4)
    for path in sorted(folders.glob("?/*.txt")):  # each has most lines of the same menu
        top, end = draw.sample(MENU[:30], 24), draw.sample(MENU[30:], 24)
        write(path, [*top, *path.read_text().splitlines(), *end])
    assert names(aligned(encoder, folders)) == before


def test_the_order_of_sentences_tells_documents_apart(encoder, folders):
    for side, straight, turned in (("a", "05.txt", "x.txt"), ("b", "x.txt", "05.txt")):
        lines = (folders / side / "05.txt").read_text().splitlines()
        write(folders / side / straight, lines)
        write(folders / side / turned, lines[::-1])
    assert {("05.txt", "x.txt"), ("x.txt", "05.txt")} <= names(aligned(encoder, folders))


def test_batches_and_copies_change_nothing(encoder, folders, monkeypatch):
    for side in "ab":
        write(folders / side / "copy.txt", (folders / side / "07.txt").read_text().splitlines())
    before = aligned(encoder, folders)
    assert {("07.txt", "07.txt"), ("copy.txt", "copy.txt")} <= names(before)
    batched = documents.batched
    monkeypatch.setattr(documents, "batched", lambda items, size: batched(items, size, 2))
    assert aligned(encoder, folders) == before


def test_what_has_no_text_is_in_no_pair_and_counted(encoder, folders, caplog):
    before = names(aligned(encoder, folders))
    write(folders / "a" / "empty.txt", [])
    write(folders / "a" / "blank.txt", ["", " \u200b"])
    write(folders / "b" / ".hidden" / "x.txt", WORDS[:12])
    assert names(aligned(encoder, folders)) == before
    assert "a: documents without text, in no pair: 2" in caplog.text


def test_what_is_no_text_is_an_error_or_skipped(encoder, folders, caplog):
    before = names(aligned(encoder, folders))
    (folders / "a" / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9)
    with pytest.raises(EmsError, match=r"a/x\.png: expected text"):
        aligned(encoder, folders)
    with open(folders / "b" / "02.txt", "ab") as writer:
        writer.write(b"caf\xe9\n")
    assert names(aligned(encoder, folders, skip=True)) == before
    assert "x.png: expected text" in caplog.text
    assert caplog.text.count("02.txt: 1 bad lines skipped (not UTF-8)") == 1
    (folders / "a" / "x.png").unlink()
    with pytest.raises(EmsError, match=r"b/02\.txt: line 13: not UTF-8.*--bad skip"):
        aligned(encoder, folders)


def test_errors_name_the_folder_and_leave_no_output(encoder, folders):
    with pytest.raises(EmsError, match="none: expected a folder of documents, found no folder"):
        DocumentFolder(folders / "none").files()
    (folders / "none").mkdir()
    with pytest.raises(EmsError, match="none: expected documents, found no file"):
        DocumentFolder(folders / "none").files()
    write(folders / "none" / "x", [""])
    sides = DocumentFolder(folders / "a"), DocumentFolder(folders / "none")
    with pytest.raises(EmsError, match="none: expected documents with text, found only empty ones"):
        align_documents(encoder, sides, folders / "pairs.tsv")
    assert not (folders / "pairs.tsv").exists()
    write(folders / "a" / "a\tb", ["x"])
    with pytest.raises(EmsError, match="in the name; rename it"):
        aligned(encoder, folders)


def test_the_command_writes_paths_that_can_be_opened(folders, model):
    cli = Cli(folders)
    flags = "--source a --target b --source-language en --out pairs.tsv"
    log = cli("align-documents", "--model", model, *flags.split())
    assert any("pairs.tsv: 24 pairs of 24 and 24 documents" in line for line in log)
    rows = [row.split("\t") for row in (folders / "pairs.tsv").read_text().splitlines()]
    with chdir(folders):
        assert all(Path(one).is_file() and Path(other).is_file() for _, one, other in rows)
