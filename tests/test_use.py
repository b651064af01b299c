"""Laws of a model in use: one row per line whatever it holds and whatever dies, and the same result
from the command, the function and the benchmark."""

import io
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from contextlib import chdir, redirect_stdout
from itertools import count

import numpy as np
import pytest
from conftest import ROOT
from made.cli import Cli
from made.corpora import moses_of, packed, translations, write_lines
from made.experiments import shipped
from made.models import SIZES, write_model, write_segmented
from made.text import cleaned, segment_alone, tiny
from made.train import Killed
from safetensors.torch import save_file

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.base.texts import is_visible
from ems.commands.cli import main
from ems.config.experiment import Corpus
from ems.config.languages import code_among, load_languages
from ems.config.model import EncoderSettings
from ems.model.encode import SentenceEncoder
from ems.model.encoder import Encoder as Layers
from ems.shards.index import shards_in
from ems.shards.shard import Shard
from ems.shards.writer import write_shards
from ems.text.evalkeys import write_keys
from ems.text.subwords import train_vocabulary, write_sample
from ems.use import encoder as use
from ems.use import files, stream
from ems.use.encoder import Encoder, mine, score
from ems.use.search import index_of
from ems.use.stream import TextInput


class ModelCli(Cli):
    """The command line with a model: a command is one text without --model."""

    def __init__(self, folder, model):
        super().__init__(folder)
        self.model = model

    def words(self, command):
        name, *rest = command.split()
        return [name, "--model", str(self.model), *rest]

    def log(self, command):
        return "\n".join(self(*self.words(command)))

    def write(self, name, lines):
        write_lines(self.folder / name, lines)

    def load(self, name="out.npy"):
        """The array of a .npy, the rows of a TSV, or the lines of a .txt as numbers."""
        if name.endswith(".npy"):
            return np.load(self.folder / name)
        rows = (self.folder / name).read_text().split("\n")[:-1]
        return [row.split("\t") for row in rows] if name[-4:] == ".tsv" else list(map(float, rows))


def sentences(count):
    """Lines of 1 to 10 words, others for each count."""
    return [item["en"] for item in translations(count, ["en"], seed=count, most=10)]


ODD = ["", "a\u2028b", "c\rd", "e\x85f"]
LINES = [*sentences(56), *ODD]
ZERO = [LINES.index(line) for line in ("", "c\rd")]  # without a known piece
MINE = "mine --source a.txt --target b.txt"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("use") / "model", ["de", "en"], sentences(300))


@pytest.fixture(scope="module")
def encoder(model):
    return Encoder(model)


@pytest.fixture
def ems(tmp_path, monkeypatch, model):
    monkeypatch.setattr(files, "PIECE_LINES", 7)
    return ModelCli(tmp_path, model)


# --- the encoder


def test_vectors_are_those_of_the_model_in_the_form_asked_for(model, encoder):
    plain = SentenceEncoder(model).encode(LINES, "de")
    plain[ZERO] = 0
    assert encoder.encode(LINES).tobytes() == plain.tobytes()
    unit = encoder.encode(LINES, "en", normalise=True, dimensions=5)
    lengths = np.linalg.norm(plain[:, :5], axis=1, keepdims=True) + (plain[:, :1] == 0)
    np.testing.assert_allclose(unit, plain[:, :5] / lengths, atol=1e-6)
    half = encoder.encode(LINES, half=True)
    assert (half.dtype, half.tobytes()) == (np.float16, plain.astype(np.float16).tobytes())
    assert encoder.encode([]).shape == (0, 16)
    exact = encoder.encode(LINES, normalise=True)
    for precision in ("bfloat16", "int8"):
        rows = Encoder(model, "cpu", precision).encode(LINES, normalise=True)
        assert 0.99 < (rows * exact).sum(1)[plain.any(1)].min() < 1
        assert (rows != exact).any()


def test_the_language_is_needed_only_where_it_matters(model, tmp_path):
    own = write_segmented(tmp_path / "own", model)
    with pytest.raises(EmsError, match=r"segments by none, sacremoses; give one of de, en, und"):
        Encoder(own).encode(LINES)
    assert Encoder(own).encode(LINES, "en").tobytes() == Encoder(model).encode(LINES).tobytes()


TWO = LINES[:2]
COLUMNS = {  # what people pass: how it is made from a list of two lines
    "a tuple": tuple,
    "an iterator": iter,
    "an array": np.array,
    "an array of objects": lambda lines: np.array(lines, object),
    "a series": lambda lines: pytest.importorskip("pandas").Series(lines, index=[7, 7]),
    "an index": lambda lines: pytest.importorskip("pandas").Index(lines),
    "chunks of arrow": lambda lines: pytest.importorskip("pyarrow").chunked_array([lines]),
    "keys": lambda lines: dict.fromkeys(lines).keys(),
}
ONES = {
    "a text": str,
    "a text of numpy": np.str_,
    "an array without dimensions": np.array,
    "a scalar of arrow": lambda line: pytest.importorskip("pyarrow").scalar(line),
}


@pytest.mark.parametrize("kind", [*COLUMNS, *ONES])
def test_any_column_of_texts_is_a_list_and_one_text_is_one_vector(encoder, kind):
    value = COLUMNS[kind](TWO) if kind in COLUMNS else ONES[kind](TWO[0])
    expected = encoder.encode(TWO) if kind in COLUMNS else encoder.encode(TWO[:1])[0]
    assert encoder.encode(value).tobytes() == expected.tobytes()
    source = COLUMNS[kind](TWO) if kind in COLUMNS else ONES[kind](TWO[0])
    target = TWO if kind in COLUMNS else TWO[0]
    assert np.shape(score(encoder, source, target)) == expected.shape[:-1]


def test_arguments_of_sentence_transformers_have_their_meaning(encoder):
    options = {"batch_size": 8, "show_progress_bar": True, "convert_to_numpy": True}
    given = encoder.encode(sentences=TWO, normalize_embeddings=True, truncate_dim=5, **options)
    assert given.tobytes() == encoder.encode(TWO, normalise=True, dimensions=5).tobytes()
    assert encoder.encode(TWO, convert_to_tensor=True).tolist() == encoder.encode(TWO).tolist()
    assert encoder.encode(TWO, dimensions=None).shape == (2, encoder.dimension)
    assert "d = 16, languages: de, en" in repr(encoder)


def test_similarity_is_the_cosine_of_texts_or_of_vectors(encoder):
    four = [*TWO, "Kalo", "mi so"]
    first, second = encoder.encode(four), encoder.encode(TWO)
    expected = first @ second.T / np.outer(*(np.linalg.norm(v, axis=1) for v in (first, second)))
    np.testing.assert_allclose(encoder.similarity(four, TWO), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.similarity(first, TWO), expected, atol=1e-6)
    assert encoder.similarity(TWO[0], TWO[0]).shape == (1, 1)


def test_progress_is_shown_where_nothing_else_shows_the_log(model):
    program = f"from ems import Encoder; Encoder({str(model)!r}).encode(['a'], show_progress=True)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    assert shown.splitlines()[-2:] == ["encode: start, 1 lines", shown.splitlines()[-1]]


def test_without_a_name_it_is_the_encoder_that_comes_with_ems(model, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(use, "source_root", lambda: tmp_path / "ems")
    with pytest.raises(EmsError, match=r"no model was named, and .*/ems-62 is not there"):
        Encoder()
    shutil.copytree(model, tmp_path / use.OWN_MODEL)
    monkeypatch.setattr(use, "EXPORTED", "model.json")  # of an export in place of a model
    caplog.set_level("INFO", "ems")
    assert Encoder().encode(TWO).tobytes() == Encoder(model).encode(TWO).tobytes()
    assert "model: ems-62, which comes with EMS" in caplog.messages


CODES = ["DE", "de-DE", "de_AT", "deu", "ger", "deu_Latn"]


@pytest.mark.parametrize("language", [*CODES, CODES[:1] * 60])
def test_other_codes_of_a_language_are_its_own_code(model, tmp_path, language):
    own = Encoder(write_segmented(tmp_path / "own", model))
    assert own.encode(LINES, language).tobytes() == own.encode(LINES, "de").tobytes()
    assert code_among(["id", "he", "zh"], "iw") == "he"
    assert code_among(["en"], "") is None


def test_each_line_may_have_its_language(model, tmp_path):
    own = Encoder(write_segmented(tmp_path / "own", model))
    lines = ["It's so.", "", "Kalo, mi."]
    mixed = own.encode(lines, ["de", "en", "en"])
    both = [own.encode(lines, code) for code in ("de", "en")]
    np.testing.assert_allclose(mixed, [both[0][0], both[1][1], both[1][2]], atol=1e-6)
    assert abs(both[0] - both[1]).max() > 0.01
    counts = [own.token_counts(lines, code) for code in ("de", "en")]
    assert own.token_counts(lines, ["en", "de", "de"])[::2] == [counts[1][0], counts[0][2]]


UNKNOWN = ["ສະບາຍ", "ខ្មែរ", "12345.", "", "\u200b"]


def test_a_line_without_a_known_piece_is_like_no_other(ems, encoder, caplog):
    assert encoder.encode([*UNKNOWN, f"{TWO[0]} 1"]).any(axis=1).tolist() == [False] * 5 + [True]
    assert "% of the pieces are unknown to the model" in caplog.text
    assert not score(encoder, UNKNOWN, UNKNOWN).any()
    mined = mine(encoder, [*UNKNOWN, TWO[0]], [*UNKNOWN, TWO[0]])
    assert (mined.first.tolist(), mined.second.tolist()) == ([5], [5])
    ems.write("a.txt", UNKNOWN * 3 + TWO)
    log = ems.log("encode --source a.txt --out a.npy")
    assert ems.load("a.npy").any(axis=1).tolist() == [False] * 15 + [True] * 2
    assert log.count("unknown to the model") == 1
    assert re.search(r"a.txt: \d+ % of the pieces .* 9 of 17 lines have no known piece", log)
    ems.write("pairs.tsv", [f"{line}\t{line}" for line in UNKNOWN])
    ems.log("score --source pairs.tsv --out scores.txt")
    assert ems.load("scores.txt") == [0] * 5


RAW = [
    ("It's co\u00adoperation\u200b, isn't it?", "我们\u200b今天去北京大学"),
    ("\u202aMr. Smith\u202c  PAID\t3.14 (cafe\u0301,\u2028so).", "他昨天在图书馆\u00ad看书。"),
]
SEGMENTERS = {"en": "sacremoses", "zh": "jieba"}


@pytest.mark.parametrize("format_characters", ["keep", "drop"])
def test_a_raw_line_becomes_the_ids_that_are_in_the_shard(tmp_path, format_characters):
    """Raw lines -> clean -> segmented -> a shard, and a model folder as training writes it."""
    archive = moses_of(tmp_path / "x.zip", RAW * 9, pair="en-zh")
    experiment = tiny(
        Corpus("C", "v1", "somewhere", True, ("en-zh",), None),
        clean={"format_characters": format_characters},
        vocabulary={"size": 110, "character_coverage": 1.0, "sample_lines": 100},
        languages={code: shipped("tiny").languages[code] for code in SEGMENTERS},
    )
    write_keys({}, tmp_path / "keys.tsv")
    cleaned(experiment, [archive], tmp_path / "keys.tsv", "en-zh", "en-zh.tsv")
    words = tmp_path / "words" / "en-zh.tsv"
    segment_alone(tmp_path / "en-zh.tsv", words, ("en", "zh"), tuple(SEGMENTERS.values()))
    write_sample(experiment, [words], tmp_path / "sample.txt")
    vocabulary, weights = tmp_path / "vocabulary.model", tmp_path / "model.safetensors"
    pieces = train_vocabulary(experiment, tmp_path / "sample.txt", vocabulary)
    write_shards(words, vocabulary, tmp_path / "shard")
    sizes = SIZES | {"layers": 0, "max_tokens": 50}
    save_file(Layers(EncoderSettings(**sizes), pieces).state_dict(), weights)
    sums = {path.name: sha256_file(path) for path in (weights, vocabulary)}
    description = {"model": sizes, "segmenters": SEGMENTERS, "sha256": sums}
    description["format_characters"] = format_characters
    (tmp_path / "model.json").write_text(json.dumps(description))
    encoder, shard = SentenceEncoder(tmp_path), Shard(*shards_in(tmp_path / "shard"))
    assert shard.pairs == 18
    for side, code in enumerate(SEGMENTERS):
        for row, ids in enumerate(encoder.tokenise([pair[side] for pair in RAW], code)):
            assert ids.tolist() == shard.piece(side, row).tolist()
    plain, odd = encoder.tokenise(["cooperation it", "co\u00adoper\u200bation it"], "en")
    assert (plain.tolist() == odd.tolist()) == (format_characters == "drop")


# --- encode


FORMS = {"a": "", "a.gz": ".gz", "a.GZ": ".gz", "a.txt": ".bz2", "a.XZ": ".xz", "a.bz2": ".zst"}


@pytest.mark.parametrize(("name", "suffix"), FORMS.items())
def test_a_file_gives_the_rows_of_its_lines_in_any_form(ems, encoder, name, suffix):
    parts = "".join(f"{line}\n" for line in LINES).encode().partition(b"\n")
    content = b"".join(packed(part, suffix) for part in (b"\xef\xbb\xbf", b"".join(parts)))
    (ems.folder / name).write_bytes(content)  # two members of .gz, two frames of .zst
    for out in ("out.npy", "out.f32 --language DE", "half.npy --half --dimensions 4"):
        ems.log(f"encode --source {name} --normalise --out {out}")
    np.testing.assert_allclose(ems.load(), encoder.encode(LINES, normalise=True), atol=1e-6)
    assert (ems.folder / "out.f32").read_bytes() == ems.load().tobytes()
    half = ems.load("half.npy")
    assert (half.dtype, half.shape) == (np.float16, (60, 4))
    assert not list(ems.folder.glob(".*"))


@pytest.mark.slow
def test_standard_input_and_output_give_the_bytes_of_files(ems, model, monkeypatch):
    monkeypatch.setattr(files, "PIECE_LINES", 1 << 15)  # as in a process of its own
    ems.write("lines.txt", LINES)
    ems.write("none.txt", [])
    for name in ("lines", "none"):
        ems.log(f"encode --source {name}.txt --out {name}.npy")
        command = ["encode", "--model", model, "--source", "-", "--out", "-"]
        with open(ems.folder / f"{name}.txt", "rb") as text:
            done = ems.start(*command, stdin=text, stdout=-1).communicate()[0]
        assert done == ems.load(f"{name}.npy").tobytes()
    assert ems.load("none.npy").shape == (0, 16)
    rows = "".join(f"{row}\n" for row in ROWS).encode()
    filtered = ems.start("score", "--model", model, "--threshold", 0.9999, stdin=-1, stdout=-1)
    assert filtered.communicate(rows)[0] == b"gleich\tgleich\tmore\n"


BAD = {3: b"\xff\xfe", 12: b"a\0b", 13: b"x" * (stream.LONGEST + 1)}
FAULTS = {3: "not UTF-8", 12: "a NUL in it", 13: "longer than 1,000,000 bytes"}


def test_skipped_lines_are_counted_and_shift_nothing(ems, encoder):
    lines = [line.encode() for line in LINES]
    for number, line in BAD.items():
        lines[number - 1] = line
    (ems.folder / "lines.txt").write_bytes(b"\n".join(lines))  # the last one without an end
    log = ems.log("encode --source lines.txt --out out.npy --bad skip")
    for number, fault in FAULTS.items():
        assert f"1 bad lines skipped ({fault}): line {number}" in log
        (ems.folder / "bad.txt").write_bytes(b"a\n" * (number - 1) + BAD[number] + b"\nb\n")
        message = ems.error(*ems.words("encode --source bad.txt --out bad.npy"))
        assert message.startswith(f"bad.txt: line {number}: {fault}; ")
        assert not (ems.folder / "bad.npy").exists()
    kept = ems.load().any(axis=1)
    assert (np.flatnonzero(~kept) + 1).tolist() == [*BAD, *(at + 1 for at in ZERO)]
    np.testing.assert_allclose(ems.load()[kept], encoder.encode(LINES)[kept], atol=1e-5)


@pytest.mark.parametrize("command", ["encode --source a.txt", MINE])
def test_stopped_and_run_again_gives_the_same_bytes(ems, command, monkeypatch):
    ems.write("a.txt", LINES)
    ems.write("b.txt", sentences(40))
    ems.log(f"{command} --out whole.npy")
    block = files.EncodingJob.block

    def stop(after):
        calls = count()

        def dies(*arguments):
            if next(calls) == after:
                raise Killed
            return block(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(files.EncodingJob, "block", dies)
            assert "Killed" in ems.error(*ems.words(f"{command} --out out.npy"))

    for after in (1, 5):
        stop(after)
        assert not (ems.folder / "out.npy").exists()
    assert "resumed" in ems.log(f"{command} --out out.npy")
    assert (ems.folder / "out.npy").read_bytes() == (ems.folder / "whole.npy").read_bytes()
    assert not list(ems.folder.glob(".*"))
    stop(3)
    ems.write("a.txt", ["other", *LINES])  # what another text has left is not used
    assert "resumed" not in ems.log(f"{command} --out out.npy")


# --- score

PAIRS = [*zip(LINES, sentences(60), strict=True), ("gleich", "gleich")]
ROWS = [f"{first}\t{second}\tmore" for first, second in PAIRS]


@pytest.mark.parametrize("margin", ["absolute", "ratio", "distance"])
def test_the_score_of_a_row_is_that_of_the_function(ems, encoder, margin):
    ems.write("pairs.tsv", ROWS)
    command = f"score --source pairs.tsv --margin {margin} --out"
    ems.log(f"{command} scores.txt")
    expected = score(encoder, *zip(*PAIRS, strict=True), margin=margin)
    np.testing.assert_allclose(ems.load("scores.txt"), expected, atol=1e-5)
    assert margin != "absolute" or expected[-1] == pytest.approx(1)
    least = float(np.median(expected)) + 1e-5
    ems.log(f"{command} kept.tsv --threshold {least}")
    kept = [row for row, value in zip(ROWS, expected, strict=True) if value >= least]
    assert (ems.folder / "kept.tsv").read_bytes().decode().split("\n") == [*kept, ""]
    assert 10 < len(kept) < 50
    assert not list(ems.folder.glob(".*"))


@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_a_bad_row_keeps_its_place_among_the_scores(ems, margin):
    rows = [row.encode() for row in ROWS]
    rows[8], rows[20] = b"one column", b"\xff\tb"
    (ems.folder / "pairs.tsv").write_bytes(b"\n".join(rows) + b"\n")
    command = f"score --source pairs.tsv --margin {margin} --out scores.txt"
    message = ems.error(*ems.words(command))
    assert message.startswith("pairs.tsv: line 9: one column, expected two or more; ")
    assert re.search("line 9.*line 21", ems.log(f"{command} --bad skip"), re.DOTALL)
    values = np.isnan(ems.load("scores.txt"))
    assert (len(values), np.flatnonzero(values).tolist()) == (len(ROWS), [8, 20])


# --- mine


def write_sides(ems):
    """Texts of which every third line of the first is in the second, with blank lines in both."""
    first, second = sentences(50), sentences(40)
    sides = [*first, "", " "], [*first[::3], "", *second]
    for name, lines in zip(("a.txt", "b.txt"), sides, strict=True):
        ems.write(name, lines)
    return sides


def test_mined_pairs_are_those_of_plain_loops(ems, encoder):
    first, second = write_sides(ems)
    ems.log(f"{MINE} --out m.tsv --one-to-one --numbers")
    rows = ems.load("m.tsv")
    pairs = [(int(row[3]) - 1, int(row[4]) - 1) for row in rows]
    assert [(row[1], row[2]) for row in rows] == [(first[a], second[b]) for a, b in pairs]
    assert all(first[a].strip() and second[b].strip() for a, b in pairs)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    scores = [float(row[0]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    sides = [[line for line in side if line.strip()] for side in (first, second)]
    mined = mine(encoder, *sides)
    best = zip(mined.first[:17].tolist(), mined.second[:17].tolist(), strict=True)
    expected = {(sides[0][a], sides[1][b]) for a, b in best}
    assert {(first[a], second[b]) for a, b in pairs[:17]} == expected
    blank = mine(encoder, ["ka", "", "lo"], ["", "lo", " "], one_to_one=False, neighbours=1)
    assert {*zip(blank.first.tolist(), blank.second.tolist(), strict=True)} <= {(0, 1), (2, 1)}
    ems.log(f"{MINE} --out best.tsv --threshold {scores[9]}")
    best = ems.load("best.tsv")
    assert len(best) >= 10  # without --one-to-one there may be more
    assert all(float(row[0]) >= scores[9] for row in best)
    assert len(set(map(tuple, best))) == len(best)


def test_copies_of_a_line_leave_all_margins_as_they_are(ems, encoder):
    plain = [PAIRS[at] for at in range(0, 61, 3)]
    copied = [plain[-1], *plain, ("", " "), (plain[-1][0] + " ", plain[-1][1]), plain[-1]]
    scores, mined = [], []
    for pairs in (plain, copied):
        sides = list(zip(*pairs, strict=True))
        for name, lines in zip(("a", "b"), sides, strict=True):
            ems.write(name, lines)
        ems.write("pairs.tsv", map("\t".join, pairs))
        ems.log("score --source pairs.tsv --margin ratio --out scores.txt")
        ems.log("mine --source a --target b --one-to-one --out mined.tsv")
        scores.append(ems.load("scores.txt"))
        mined.append([(float(score), one.strip()) for score, one, _ in ems.load("mined.tsv")])
        np.testing.assert_allclose(score(encoder, *sides, margin="ratio"), scores[-1], atol=1e-5)
        assert len(mine(encoder, *sides).first) == len(mined[-1])
    last = scores[0][-1]
    np.testing.assert_allclose(scores[1], [last, *scores[0], 0, last, last], atol=1e-5)
    assert [one for _, one in mined[1]] == [mined[0][0][1]] * 3 + [one for _, one in mined[0]]
    assert mined[1][0][0] == pytest.approx(mined[0][0][0])


def test_a_mined_pair_and_a_hit_are_one_line_of_their_fields(ems):
    breakers = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\t"]
    lines = [f"{text}{breaker}mi" for text, breaker in zip(sentences(10), breakers, strict=True)]
    text = "".join(f"{line}\n" for line in ["\ufeff" + lines[0], *lines[1:]]).encode()
    for name, suffix in (("a.txt", ""), ("b.txt", ".xz")):
        (ems.folder / name).write_bytes(packed(text, suffix))
    ems.log(f"{MINE} --out m.tsv --one-to-one")
    expected = {re.sub(r"\s", " ", line) for line in lines}
    written = (ems.folder / "m.tsv").read_bytes().decode().splitlines()
    assert {tuple(row.split("\t")[1:]) for row in written} == {(line, line) for line in expected}
    (ems.folder / "q.txt").write_bytes(packed(text + b"\xff\nka\n", ".bz2"))
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # as PYTHONIOENCODING=ascii has it
    words = ems.words("search --index a.txt --queries q.txt --k 1 --bad skip")
    with chdir(ems.folder), redirect_stdout(out):
        assert main(words) == 0
    hits = [row.split("\t") for row in out.buffer.getvalue().decode().splitlines()]
    assert [int(row[0]) for row in hits] == [*range(1, 11), 12]
    assert {row[3] for row in hits[:10]} == expected


def test_faiss_finds_nearly_the_same_pairs(ems):
    pytest.importorskip("faiss")
    write_sides(ems)
    ems.log(f"{MINE} --out exact.tsv --one-to-one")
    ems.log(f"{MINE} --out near.tsv --one-to-one --faiss-above 5")
    exact, near = ({tuple(row[1:]) for row in ems.load(f"{n}.tsv")} for n in ("exact", "near"))
    assert len(exact & near) > 0.8 * len(exact)


# --- search


def test_search_finds_the_line_itself_with_and_without_an_index(ems, tmp_path):
    ems.write("corpus.txt", LINES)
    ems.write("asked.txt", LINES[:5])
    ems.write("none.txt", [])
    words = ems.words("search --index corpus.txt --k 3")
    output, _ = ems.run(*words, LINES[11])
    assert len(output.splitlines()) == 3
    assert output.splitlines()[0] == f"1.0000\t12\t{LINES[11]}"
    assert not (ems.folder / "corpus.txt.index").exists()
    assert ems.run(*words, LINES[11], "--half")[0] == output  # is for a built index alone
    ems(*words, "--build")
    built = ems.folder / "corpus.txt.index"
    (built / "index.json").rename(built / ".ems-state")  # as a run killed before its last step
    ems(*words, "--build")
    assert {path.name for path in built.iterdir()} == {"vectors.npy", "index.json"}
    assert ems.run(*words, LINES[11])[0] == output
    many = ems.run(*words, "--queries", "asked.txt", "--k", "1")[0].splitlines()
    assert many == [f"{at + 1}\t1.0000\t{at + 1}\t{LINES[at]}" for at in range(5)]
    ems.write("copies.txt", LINES[:6] * 50)
    with index_of(Encoder(ems.model), TextInput(ems.folder / "copies.txt")) as index:
        numbers = [[hit.number for hit in hits] for hits in index.search(LINES[:6] * 3, k=50)]
    assert numbers == [list(range(at + 1, 301, 6)) for at in range(6)] * 3
    with index_of(Encoder(ems.model), TextInput(ems.folder / "corpus.txt")) as index:
        assert index.search(LINES[11], k=1) == index.search(np.array([LINES[11]]), "deu", 1)[0]
    ems.write("corpus.txt", [*LINES, "new"])
    ems(*words, "--queries", "none.txt")  # without a query the index is not opened
    assert "has changed since; make it again with --build" in ems.error(*words, "ka")
    other = write_model(tmp_path / "other", ["de"], sentences(300), seed=3)
    assert "of another model" in ems.error("search", "--model", other, *words[3:], "ka")


def test_queries_come_from_standard_input_and_languages_from_a_file(ems, monkeypatch):
    ems.write("corpus.txt", LINES)
    ems.write("corpus.txt.languages", ["de", "", *["en"] * (len(LINES) - 2)])
    words = ems.words("search --index corpus.txt --k 1")

    def searched(*lines):
        text = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text))
        return ems.run(*words)[0]

    assert searched(LINES[0]) == f"1.0000\t1\tde\t{LINES[0]}\n"
    assert searched(*LINES[1:3]) == (f"1\t1.0000\t2\t\t{LINES[1]}\n2\t1.0000\t3\ten\t{LINES[2]}\n")


def test_the_phrases_are_six_in_each_language_of_the_released_encoder():
    lines, codes = (
        (ROOT / f"examples/phrases.txt{end}").read_text(encoding="utf-8").splitlines()
        for end in ("", ".languages")
    )
    assert len(set(lines)) > 360  # some languages share one
    assert all(line == unicodedata.normalize("NFC", line) and is_visible(line) for line in lines)
    assert codes == sorted([*load_languages()] * 6)
