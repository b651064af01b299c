"""The encoder without layers in NumPy: PyTorch's vectors, and the same bits in any company."""

import random
from functools import cache

import numpy as np
import pytest
from conftest import SHARED, needs
from made.models import write_model

from ems.base.errors import EmsError
from ems.corpora.demo.grammar import OTHERS
from ems.corpora.demo.mirror import train_pairs
from ems.corpora.demo.texts import build
from ems.model import static
from ems.model.encode import SentenceEncoder
from ems.model.static import StaticEncoder, Table, Words, load_encoder
from ems.text.normalise import tidy

ODD = [
    *("", "  ", "a\0b c", "ΟΔΟΣ Σ", "▁a▁ b", "a" * 300, "wort " * 40, "\u200b", "´a b´ ﷺ x"),
    *("x\u3000y\u00a0z", "<unk> <2en> <pad>", "𝔘𝔫 ﬁ", "☃☃ ☃", "e\u0301 \u0301e", "日本語 テスト"),
    *("¿Qué? ¡No!", "100,5 % (rund)", "İstanbul I\u0307", "हिन्दी में", "ภาษาไทย", "\u1100\u1161"),
]
SIZES = {"layers": 0, "table": 24, "ngrams": 500, "max_tokens": 30}


@cache
def demo_lines():
    material = build()
    pairs = (pair for code in OTHERS for pair in train_pairs(material, code))
    return [side for pair in pairs for side in pair]


def flores_lines():
    folder = SHARED / "flores200/flores200_dataset/devtest"
    needs(folder.is_dir(), "needs ../shared/data")
    files = sorted(folder.iterdir())[:60]
    return [line for file in files for line in file.read_text("utf-8").split("\n")[:170]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    text = list(map(tidy, [*demo_lines()[:2000], *ODD]))
    return write_model(tmp_path_factory.mktemp("s") / "m", ["en", "de"], text, 300, sizes=SIZES)


@pytest.fixture(scope="module", params=["demo", "flores"])
def lines(request):
    """10,000 lines of the demo's eight languages, or of 60 where a developer has them."""
    found = (demo_lines if request.param == "demo" else flores_lines)()
    order = random.Random(1).sample(range(len(found)), min(len(found), 10_000))
    return [*(found[at] for at in order), *ODD]


@pytest.fixture(params=["compiled", "numpy"])
def kernel(request, monkeypatch):
    """Sums with and without static.c."""
    needs(static.KERNEL, "static.c is not compiled: install a C compiler, then `pip install -e .`")
    if request.param == "numpy":
        monkeypatch.setattr(static, "KERNEL", None)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_vector_has_the_same_bits_in_any_batch_with_any_threads_and_cache(
    folder, lines, precision, monkeypatch
):
    vectors = StaticEncoder(folder, precision).encode(lines, what="")
    monkeypatch.setattr(static, "KERNEL", None)
    assert StaticEncoder(folder, precision).encode(lines, what="").tobytes() == vectors.tobytes()
    monkeypatch.undo()
    draw = random.Random(2)
    for megabytes, threads, units in ((0, 3, 100), (0.05, 1, 1000), (64, 2, 8192)):
        monkeypatch.setattr(static, "UNITS", units)
        encoder = StaticEncoder(folder, precision, megabytes, threads)
        order, again = draw.sample(range(len(lines)), len(lines)), np.empty_like(vectors)
        while order:
            count = draw.choice([1, 7, 100, 3000])
            some, order = order[:count], order[count:]
            again[some] = encoder.encode([lines[at] for at in some], what="")
        assert again.tobytes() == vectors.tobytes()


@pytest.mark.usefixtures("kernel")
def test_vectors_and_counts_are_those_of_pytorch(folder, lines):
    ours, theirs = StaticEncoder(folder).encoded(lines), SentenceEncoder(folder).encoded(lines)
    for name in ("tokens", "unknown", "meaningful"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
    products = np.einsum("nd,nd->n", ours.vectors, theirs.vectors, dtype=np.float64)
    lengths = [np.linalg.norm(one.vectors.astype(np.float64), axis=1) for one in (ours, theirs)]
    assert (products / np.prod(lengths, 0)).min() > 0.999999


@pytest.mark.parametrize("segmenter", ["unicode", "moses-fast"])
def test_a_segmenter_of_words_or_lines_changes_no_vector(tmp_path, segmenter):
    text = [*map(tidy, demo_lines()[:500]), *map(tidy, ODD)]
    folder = write_model(tmp_path / "m", ["en"], text, 200, segmenter=segmenter, sizes=SIZES)
    ours, theirs = (of(folder).encoded(text, "en") for of in (StaticEncoder, SentenceEncoder))
    assert ours.tokens.tolist() == theirs.tokens.tolist()
    np.testing.assert_allclose(ours.vectors, theirs.vectors, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "int8"])
def test_sums_are_chains_of_additions_in_order(kind):
    draw = np.random.default_rng(1)
    rows = draw.standard_normal((50, 7)).astype(np.float32)
    if kind == "float16":
        rows = rows.astype(np.float16)
    if kind == "bfloat16":
        rows = (rows.view(np.uint32) >> 16).astype(np.uint16)
    table = Table(rows, kind == "int8")
    counts = draw.integers(0, 40, 300)
    index = draw.integers(0, 50, counts.sum())
    out = np.zeros((300, 7), np.float32)
    table.add(index, counts, out, np.arange(300))
    ends = np.cumsum(counts)
    for start, end, found in zip(ends - counts, ends, out, strict=True):
        total = np.zeros(7, np.float32)
        for row in index[start:end]:
            total = total + table._take(np.array([row]))[0]
        assert found.tobytes() == total.tobytes()


def test_frequent_words_stay_in_the_cache_and_text_without_spaces_never_enters():
    words = Words(3 * (4 * 2 + static.ENTRY) / 1e6, 2, 50)
    assert words.capacity == 3
    made = []

    def make(new, sums, slots):
        made.extend(new)
        sums[slots] = [[len(word), 0] for word in new]
        return np.ones((len(new), 4), int)

    for number in range(20):
        text = ["often", "often", f"rare{number}", "今日は晴れ", "x" * 30]
        slots = words.slots(text, make)
        assert words.sums[slots, 0].tolist() == list(map(len, text))
        assert words.counted(slots, np.array([5])).tolist() == [[5] * 4]
    assert made.count("often") == 1
    assert made.count("今日は晴れ") == made.count("x" * 30) == 20


def test_the_engine_is_chosen_by_the_model_and_named_dimensions_must_be_there(folder, tmp_path):
    assert isinstance(load_encoder(folder), StaticEncoder)
    layers = write_model(tmp_path / "m", ["en"], ["a b c d e f g h i j"] * 9, 16)
    assert isinstance(load_encoder(layers, "cpu"), SentenceEncoder)
    with pytest.raises(EmsError, match="language 'xx'"):
        load_encoder(folder).encode(["a"], "xx")
