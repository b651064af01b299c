"""Laws of alignment: the cheapest path of plain loops, each sentence once and in order, the same
result for any number of processes and after any kill, and the same pairs in every form."""

import base64
import json
import random
from html.parser import HTMLParser
from math import inf, log, sqrt
from xml.dom import minidom

import numpy as np
import pytest
import yaml
from conftest import ROOT, SHARED, needs
from made.browser import DESKTOP, PHONE, findings
from made.cli import Cli
from made.translated import documents, sentence_pairs, strict_and_lax

from ems import align
from ems.base.errors import EmsError
from ems.base.files import state_of
from ems.model.lines import unit_rows
from ems.use import align as module
from ems.use import aligned
from ems.use.align import Side, align_sides
from ems.use.encoder import Encoder

CODES = ("--source-language", "de", "--target-language", "en")


@pytest.fixture(scope="module")
def encoder():
    return Encoder()  # the one that comes with EMS


@pytest.fixture
def ems(tmp_path):
    return Cli(tmp_path)


def pairs_of(alignments):
    return [(tuple(each.source), tuple(each.target)) for each in alignments]


def scores(encoder, count=60, seed=0, **options):
    first, second, gold = documents(count, seed, **options)
    return strict_and_lax(gold, pairs_of(align(encoder, first, second, "de", "en")))


# --- quality


def test_made_documents_are_aligned(encoder):
    for seed in range(5):
        strict, lax = scores(encoder, seed=seed)
        assert strict > 0.9
        assert lax > 0.97


def test_the_development_document_of_bleualign_is_aligned_as_well_as_the_docs_say(encoder):
    needs((SHARED / "bleualign").is_dir(), "Bleualign's documents are not available")
    lines = {
        side: (SHARED / "bleualign" / f"dev.{side}").read_text().splitlines()
        for side in ("de", "fr", "defr")
    }
    gold = [tuple(map(tuple, map(yaml.safe_load, line.split(":")))) for line in lines["defr"]]
    found = pairs_of(align(encoder, lines["de"], lines["fr"], "de", "fr"))
    strict, lax = strict_and_lax(gold, found)
    assert strict >= 0.88
    assert lax >= 0.99


def test_the_story_in_examples_is_aligned_as_it_was_written(encoder):
    texts = [
        (ROOT / f"examples/story.{code}.txt").read_text().splitlines() for code in ("de", "en")
    ]
    found = align(encoder, *texts, "de", "en")
    shapes = [(len(each.source), len(each.target)) for each in found]
    assert shapes == [(1, 1), (2, 1), (1, 2), *[(1, 1)] * 5, (0, 1), (1, 1), (2, 1), (1, 2)]
    assert min(each.score for each in found if each.source) > 0.6


def test_other_text_scores_far_below_a_translation(encoder):
    first, second, _ = documents(60)
    *_, other = documents(200, 7)[:2]
    means = [
        np.mean([each.score for each in align(encoder, first, text, "de", "en") if each.score])
        for text in (second, other[-40:])
    ]
    assert means[0] > aligned.WEAK + 0.2
    assert means[1] < means[0] - 0.2


# --- the path


def test_the_vector_of_adjacent_sentences_is_that_of_their_text(encoder):
    lines = [pair[0] for pair in sentence_pairs(7)]
    side = Side.of_sums(lines, *encoder.sums(lines, "de"), encoder.vectors_of)
    vectors, _, legal = side.windows(0, 7, 4)
    for size in range(1, 5):
        for end in range(size, 8):
            text = " ".join(lines[end - size : end])
            expected = encoder.encode(text, "de", normalise=True)
            assert np.allclose(vectors[size - 1, end - 1], expected, atol=1e-5)
        assert not legal[size - 1, : size - 1].any()
        assert legal[size - 1, size - 1 :].all()


def cheapest(first, second, largest, ratio):
    """The least cost in plain loops over the texts of spans, whose vectors `first` has."""
    (texts, vectors), (other_texts, other_vectors) = first, second
    n, m = len(texts), len(other_texts)
    letters = [[sum(map(str.isalnum, text)) for text in own] for own in (texts, other_texts)]
    means = [sum(own) / len(own) + 3 for own in letters]
    centres = [
        np.mean([own[i, i + 1] for i in range(len(side))], 0)
        for own, side in ((vectors, texts), (other_vectors, other_texts))
    ]

    def cost(i, k, j, p):
        one, other = vectors[i, k], other_vectors[j, p]
        around = (one @ centres[1] + other @ centres[0]) / 2
        size = sum(letters[0][i:k]) + 3, sum(letters[1][j:p]) + 3
        length = sqrt((size[0] / means[0] + size[1] / means[1]) / 2)
        deviation = abs(log(size[0] / size[1]) - ratio)
        distance = (1 - one @ other) / max(1 - around, 1e-3)
        return (k - i + p - j) / 2 * distance + 0.65 * length * deviation - 0.65

    best = {(0, 0): 0.0}
    for i in range(n + 1):
        for j in range(m + 1):
            if i or j:
                options = [best[i - 1, j] + 0.38] if i else []
                options += [best[i, j - 1] + 0.38] if j else []
                options += [
                    best[a, b] + cost(a, i, b, j)
                    for a in range(i)
                    for b in range(j)
                    if i - a + j - b <= largest
                ]
                best[i, j] = min(options, default=inf)
    return best[n, m], cost


@pytest.mark.parametrize("largest", [2, 5, 8])
def test_the_path_is_the_cheapest_of_plain_loops(encoder, largest):
    first, second, _ = documents(16, largest)
    texts = []
    for lines, language in ((first, "de"), (second, "en")):
        spans = {
            (i, k): " ".join(lines[i:k])
            for i in range(len(lines))
            for k in range(i, len(lines) + 1)
        }
        vectors = encoder.encode(list(spans.values()), language, normalise=True)
        texts.append((lines, dict(zip(spans, vectors, strict=True))))
    sides = [
        Side.of_sums(lines, *encoder.sums(lines, language), encoder.vectors_of)
        for lines, language in ((first, "de"), (second, "en"))
    ]
    band = module._band(None, *map(len, sides))
    spans = module._search(*sides, largest, band, 0.1, None)
    least, cost = cheapest(*texts, largest, 0.1)
    found = sum(cost(i, k, j, p) if i < k and j < p else 0.38 for i, j, k, p in spans)
    assert found == pytest.approx(least, abs=1e-3)
    assert max(k - i + p - j for i, j, k, p in spans) <= largest


def test_each_sentence_is_in_one_alignment_in_its_order_and_empty_lines_in_none(encoder):
    rng = random.Random(1)
    words = ["", " ", "\u200b", "Haus", "Ein Hund.", "...", "¿?", "Wasser und Brot", "x" * 300]
    for _ in range(30):
        sides = [[rng.choice(words) for _ in range(rng.randrange(12))] for _ in range(2)]
        largest = rng.randrange(1, 9)
        found = align(encoder, *sides, "de", "en", largest)
        for side, lines in enumerate(sides):
            covered = [line for each in found for line in each[side]]
            assert covered == [n for n, line in enumerate(lines) if line.strip("\u200b ")]
        for one, other, score in found:
            assert len(one) + len(other) <= max(2, largest)
            assert score == 0 or (one and other)


def test_no_alignment_crosses_an_empty_line(encoder):
    first, second = ["Ein Hund.", "Und eine Katze."], ["A dog and a cat."]
    assert pairs_of(align(encoder, first, second, "de", "en")) == [((0, 1), (0,))]
    apart = align(encoder, [first[0], "", first[1]], second, "de", "en")
    assert all(len(each.source) < 2 for each in apart)


def test_a_document_is_aligned_with_itself_line_by_line(encoder):
    lines = [pair[0] for pair in sentence_pairs(300)]
    found = align(encoder, lines, lines, "de", "de")
    assert pairs_of(found) == [((n,), (n,)) for n in range(300)]
    assert all(each.score > 0.999 for each in found)


def test_swapped_documents_give_swapped_alignments(encoder):
    first, second, _ = documents(50)
    found = {(*pair,) for pair in pairs_of(align(encoder, first, second, "de", "en"))}
    back = {(b, a) for a, b in pairs_of(align(encoder, second, first, "en", "de"))}
    assert len(found & back) >= 0.95 * len(found)


def test_the_search_near_a_coarser_path_finds_what_the_whole_search_finds(encoder, monkeypatch):
    first, second, gold = documents(360, dropped=0.05)
    first[100:100] = [f"Kapitel {n} beginnt hier ganz neu." for n in range(60)]  # a long insertion
    near = pairs_of(align(encoder, first, second, "de", "en"))
    monkeypatch.setattr(module, "DENSE", 1000)
    whole = pairs_of(align(encoder, first, second, "de", "en"))
    assert len(set(near) & set(whole)) >= 0.98 * len(whole)
    assert len(gold) > 150


def test_a_model_whose_vectors_do_not_add_up_gets_the_texts_of_all_windows(encoder):
    first, second, _ = documents(20)
    sides = [
        Side.of_windows(lines, lambda texts, own=code: encoder.vectors(texts, own, normalise=True))
        for lines, code in ((first, "de"), (second, "en"))
    ]
    expected = pairs_of(align(encoder, first, second, "de", "en"))
    assert pairs_of(align_sides(*sides)) == expected
    assert np.allclose(unit_rows(sides[0].joined[0]), encoder.encode(first, "de", normalise=True))


# --- forms


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.cells, self.inside = [], False
        self.feed(text.split("<tbody>")[1])

    def handle_starttag(self, tag, attributes):
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data.strip("\n")


@pytest.fixture
def texts(ems):
    """Two documents with characters that forms must escape; the texts of their pairs."""
    first, second, _ = documents(30)
    first[0], second[0] = "Der <b>Arzt</b> & 5 > 3.", "The <b>doctor</b> & 5 > 3."
    (ems.folder / "a.de").write_text("\n".join(first) + "\n")
    (ems.folder / "b.en").write_text("\n".join(second) + "\n")
    ems.run("align", "--source", "a.de", "--target", "b.en", *CODES, "--out", "all.tsv")
    rows = [line.split("\t") for line in (ems.folder / "all.tsv").read_text().splitlines()]
    assert all(len(row) == 5 for row in rows)
    assert any(not (row[0] and row[1]) for row in rows)
    return rows


def written(ems, form, *more, name="out"):
    command = ("align", "--source", "a.de", "--target", "b.en", *CODES, "--format", form)
    ems.run(*command, "--out", name, *more)
    return ems.folder / name


def test_every_form_has_the_same_pairs(ems, texts):
    both = [(row[0], row[1]) for row in texts if row[0] and row[1]]
    written(ems, "moses")
    sides = [(ems.folder / f"out.{code}").read_text().splitlines() for code in ("de", "en")]
    assert list(zip(*sides, strict=True)) == both
    units = minidom.parse(str(written(ems, "tmx"))).getElementsByTagName("tu")
    segments = [
        tuple(each.firstChild.data for each in unit.getElementsByTagName("seg")) for unit in units
    ]
    assert segments == both
    objects = [json.loads(line) for line in written(ems, "jsonl").read_text().splitlines()]
    assert [(each["de"], each["en"]) for each in objects] == [(row[0], row[1]) for row in texts]
    assert [f"{each['score']:.4f}" for each in objects] == [row[2] for row in texts]
    lines = written(ems, "vecalign").read_text().splitlines()
    numbers = [tuple(map(yaml.safe_load, line.split(":")[:2])) for line in lines]
    assert [[n + 1 for n in one] for one, _ in numbers] == [each["lines"][0] for each in objects]
    cells = Cells(written(ems, "html").read_text()).cells
    shown = [text.replace(" ", "") for text in cells[1::5]]
    assert shown == [row[0].replace(" ", "") for row in texts]


@pytest.mark.parametrize(("dark", "width"), [(False, DESKTOP), (True, PHONE)])
def test_the_page_can_be_read_by_everybody(ems, texts, browser, dark, width):
    assert findings(browser, written(ems, "html", name="out.html"), dark, width) == []


def test_a_threshold_leaves_out_weak_pairs_and_lone_sentences(ems, texts):
    kept = [
        line.split("\t")
        for line in written(ems, "tsv", "--threshold", 0.7).read_text().splitlines()
    ]
    assert kept == [row for row in texts if float(row[2]) >= 0.7]
    assert 0 < len(kept) < len(texts)


def test_chinese_and_japanese_sentences_are_joined_without_a_space():
    assert aligned.joined(["你好。", "再见。"]) == "你好。再见。"
    assert aligned.joined(["Hello. ", "你好 再见。"]) == "Hello. 你好 再见。"


def test_split_aligns_the_sentences_of_paragraphs(ems):
    pairs = sentence_pairs(12)
    for name, side in (("a.de", 0), ("b.en", 1)):
        text = [" ".join(pair[side] for pair in pairs[at : at + 4]) for at in range(0, 12, 4)]
        (ems.folder / name).write_text("\n\n".join(text) + "\n")
    rows = [
        line.split("\t")[:2] for line in written(ems, "tsv", "--split").read_text().splitlines()
    ]
    assert rows == [list(pair) for pair in pairs]


# --- many documents


@pytest.fixture
def folder(ems, monkeypatch):
    """A folder of documents; a piece has five."""
    monkeypatch.setattr(aligned, "DOCUMENTS", 5)
    (ems.folder / "texts").mkdir()
    for number in range(23):
        for lines, code in zip(documents(12, number)[:2], ("de", "en"), strict=True):
            path = ems.folder / "texts" / f"d{number:02}.{code}"
            path.write_text("".join(f"{line}\n" for line in lines))
    (ems.folder / "texts" / "alone.de").write_text("Ein Satz.\n")
    return ems.folder / "texts"


def test_a_folder_a_list_of_paths_and_bitextors_rows_give_the_same_pairs(ems, folder):
    log = "\n".join(ems("align", "--documents", "texts", *CODES, "--out", "folder.tsv"))
    assert "texts: 1 files have no partner and are left out" in log
    stems = [f"texts/d{number:02}" for number in range(23)]
    paths = [(f"{stem}.de", f"{stem}.en") for stem in stems]
    (ems.folder / "list.tsv").write_text("".join(f"0.9\t{one}\t{two}\n" for one, two in paths))
    ems("align", "--documents", "list.tsv", *CODES, "--out", "listed.tsv")
    texts = [
        [base64.b64encode((ems.folder / path).read_bytes()).decode() for path in pair]
        for pair in paths
    ]
    rows = ["\t".join((*pair, *text)) for pair, text in zip(paths, texts, strict=True)]
    (ems.folder / "bitextor.tsv").write_text("".join(f"{row}\n" for row in rows))
    ems("align", "--documents", "bitextor.tsv", *CODES, "--out", "decoded.tsv")
    contents = [
        (ems.folder / f"{name}.tsv").read_text() for name in ("folder", "listed", "decoded")
    ]
    assert contents[0] == contents[1] == contents[2]
    alone = align(Encoder(), *documents(12, 4)[:2], "de", "en")
    own = [line for line in contents[0].splitlines() if line.endswith("texts/d04.de\ttexts/d04.en")]
    assert [line.split("\t")[2] for line in own] == [f"{each.score:.4f}" for each in alone]


@pytest.mark.slow
def test_processes_and_kills_change_no_byte(ems, folder, monkeypatch):
    command = ("align", "--documents", "texts", *CODES)
    ems(*command, "--out", "one.tsv")
    monkeypatch.undo()  # in processes of their own, a piece has 64 documents: list each six times
    rows = aligned.listed(folder, ("de", "en"))
    paths = [row.decode().split("\t", 1)[1].replace(f"{ems.folder}/", "") for row in rows]
    (ems.folder / "many.tsv").write_text("".join(paths * 12))
    many = ("align", "--documents", "many.tsv", *CODES)
    ems(*many, "--out", "many.one.tsv")
    ems(*many, "--threads", 2, "--out", "many.two.tsv")
    expected = (ems.folder / "many.one.tsv").read_bytes()
    assert expected == (ems.folder / "one.tsv").read_bytes() * 12
    assert expected == (ems.folder / "many.two.tsv").read_bytes()
    out = ems.folder / "killed.tsv"
    ems.kill_once(lambda: any(state_of(out).glob("**/done/*.json")), *many, "--out", out)
    assert not out.exists()
    assert "resumed" in "\n".join(ems(*many, "--out", out))
    assert out.read_bytes() == expected
    assert not state_of(out).exists()


def test_a_bad_pair_of_documents_is_an_error_or_is_skipped(ems, folder):
    (ems.folder / "list.tsv").write_text("texts/d00.de\ttexts/d00.en\ntexts/d01.de\ttexts/no.en\n")
    error = ems.error("align", "--documents", "list.tsv", *CODES, "--out", "a.tsv")
    assert "documents, line 2: texts/no.en: no such file" in error
    log = "\n".join(
        ems("align", "--documents", "list.tsv", *CODES, "--bad", "skip", "--out", "a.tsv")
    )
    assert "line 2" in log
    assert (
        len({line.split("\t")[5] for line in (ems.folder / "a.tsv").read_text().splitlines()}) == 1
    )


@pytest.mark.slow
def test_documents_become_a_corpus_whose_pairs_name_their_documents(finished):
    tiny = yaml.safe_load((finished.folder / "configs/tiny.yaml").read_text())
    tiny |= {"languages": ["en", "de"], "segmenters": {"default": "none"}}
    tiny["corpora"] = [{"name": "Mine", "documents": {"folder": "texts", "threshold": 0.6}}]
    tiny["corpora"].append({"name": "Demo", "version": "v1", "max_pairs": 500})
    finished.select("aligned", tiny)
    folder = finished.folder / "texts"
    folder.mkdir()
    for number in range(4):
        for lines, code in zip(documents(30, number)[:2], ("de", "en"), strict=True):
            (folder / f"d{number}.{code}").write_text("".join(f"{line}\n" for line in lines))
    finished.snakemake("--", "text")
    text = finished.folder / "results/aligned/text"
    rows = [json.loads(x) for x in (text / "aligned/Mine/own/de-en.jsonl").read_text().splitlines()]
    assert {each["documents"][0] for each in rows} == {f"texts/d{n}.de" for n in range(4)}
    assert min(each["score"] for each in rows) >= 0.6
    clean = (text / "clean/Mine/own/de-en.tsv").read_text().splitlines()
    assert len(clean) > 20
    for line in clean:
        german, english, number = line.split("\t")
        origin = rows[int(number) - 1]
        assert (german, english) == (origin["de"], origin["en"])
        lines = (finished.folder / origin["documents"][0]).read_text().splitlines()
        assert german == " ".join(lines[n - 1] for n in origin["lines"][0])


# --- errors


def test_an_output_of_moses_is_never_an_input(ems, texts):
    before = (ems.folder / "a.de").read_bytes()
    words = ("align", "--source", "a.de", "--target", "b.en", *CODES, "--format", "moses")
    assert "same place as" in ems.error(*words, "--out", "a")
    assert "writes two files" in ems.error(*words)
    assert (ems.folder / "a.de").read_bytes() == before


def test_wrong_types_are_errors(encoder):
    for arguments in (
        ("Ein Satz.", ["A sentence."]),
        ([b"x"], ["y"]),
        (["x"], ["y"], None, None, 0),
    ):
        with pytest.raises(EmsError):
            align(encoder, *arguments)


def test_an_empty_document_leaves_all_sentences_alone(encoder):
    found = align(encoder, [], ["A dog.", "A cat."], "de", "en")
    assert [tuple(each) for each in found] == [(range(0), range(1), 0), (range(0), range(1, 2), 0)]
    assert align(encoder, [], [""]) == []
