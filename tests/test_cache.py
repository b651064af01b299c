"""Laws of the cache of embeddings: it changes no vector, notices damage, and is bounded."""

import os
from itertools import product
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ems.bench.encoders import CachedEncoder, cached, make_room

MB = 1_000_000
LINES = ["one", "two", "", "two", "ö\u0301 三"]


class Counter:
    """An encoder whose vectors depend on the whole call; it records its calls."""

    identity = "counter"

    def __init__(self, factor=1.0):
        self.calls, self.factor = [], factor

    def encode(self, lines, language, what="encode"):
        self.calls.append((language, list(lines)))
        numbers = [[len(line), len(lines), self.factor] for line in lines]
        return np.array(numbers, np.float32).reshape(len(lines), 3)


def encode(folder, lines=LINES, language="en", encoder=None, limit=MB, identity="x"):
    """The vectors of an encoder with a cache, and its calls."""
    encoder = encoder or Counter()
    return CachedEncoder(encoder, identity, folder, limit).encode(lines, language), encoder.calls


def entries(folder):
    return sorted(folder.glob("*.safetensors"))


def test_cached_vectors_are_bit_for_bit_the_encoded_ones(tmp_path):
    first, calls = encode(tmp_path, encoder=Counter(np.float32(1 / 3)))
    again, none = encode(tmp_path, encoder=Counter(7))
    assert again.tobytes() == first.tobytes()
    assert again.dtype == np.float32
    assert (len(calls), none) == (1, [])
    assert encode(tmp_path, [])[0].shape == encode(tmp_path, [])[0].shape == (0, 3)


def test_another_model_language_text_or_order_is_encoded(tmp_path):
    texts, encoder = ([], [""], ["", ""], ["a"], ["a", "b"], ["ab"], ["b", "a"]), Counter()
    for identity, language, lines in product(("a", "ab"), ("b", "", "de"), texts):
        encode(tmp_path, lines, language, encoder, identity=identity)
        assert encoder.calls.pop() == (language, lines)
    assert len(entries(tmp_path)) == 2 * 3 * len(texts)


def test_an_encoder_keeps_its_abilities_and_needs_an_identity_and_room(tmp_path):
    class Counting(Counter):
        def token_counts(self, lines, language):
            return [len(line.split()) for line in lines]

    nameless, counter = Counter(), Counter()
    nameless.identity = ""
    assert cached(nameless, tmp_path, 5) is nameless
    assert cached(counter, tmp_path, 0) is counter
    assert cached(counter, tmp_path, 5).limit == 5 * MB
    assert cached(Counting(), tmp_path, 5).token_counts(["a b", ""], "en") == [2, 0]
    assert not hasattr(cached(counter, tmp_path, 5), "token_counts")


# --- damage


def spoil_bytes(path):
    *content, last = path.read_bytes()
    path.write_bytes(bytes([*content, last ^ 1]))


def swap(path):
    """Replace an entry by the undamaged entry of another call."""
    encode(path.parent, LINES[::-1])
    (other,) = set(entries(path.parent)) - {path}
    other.rename(path)


DAMAGE = {
    "a flipped bit": spoil_bytes,
    "another call": swap,
    "another key": lambda path: save_file(load_file(path), path, {"key": "0" * 64}),
    "fewer rows": lambda path: save_file({"vectors": load_file(path)["vectors"][1:].copy()}, path),
    "cut": lambda path: os.truncate(path, path.stat().st_size - 5),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no tensors"),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "another tensor": lambda path: save_file({"x": np.zeros(3, np.float32)}, path),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_reported_and_encoded_again(tmp_path, how, caplog):
    first, _ = encode(tmp_path)
    (path,) = entries(tmp_path)
    DAMAGE[how](path)
    encoder = Counter()
    for _ in range(2):  # then it is whole again
        vectors, calls = encode(tmp_path, encoder=encoder)
        assert vectors.tobytes() == first.tobytes()
        assert len(calls) == 1
    assert f"{path}: damaged" in caplog.text


# --- room


def test_the_least_recently_used_entry_is_removed_first(tmp_path):
    paths = []
    for at in range(4):
        encode(tmp_path, [f"text {at}"] * 50)
        paths += set(entries(tmp_path)) - set(paths)
        os.utime(paths[-1], ns=(at, at))
    encode(tmp_path, ["text 0"] * 50)  # used: now it is the newest
    make_room(tmp_path, 2 * paths[0].stat().st_size)
    assert set(entries(tmp_path)) == {paths[0], paths[3]}


def test_the_folder_never_outgrows_its_limit(tmp_path):
    left = tmp_path / ".0123.part"  # of a killed writer
    left.write_bytes(b"x" * 5000)
    os.utime(left, ns=(0, 0))
    for at in range(30):
        encode(tmp_path, [f"text {at}"] * 50, limit=4000)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4000
    assert len(entries(tmp_path)) > 1
    assert not left.exists()
    encode(tmp_path / "small", ["text"] * 50, limit=1000)  # more than half of the room
    assert entries(tmp_path / "small") == []


def test_a_folder_that_cannot_be_written_only_costs_a_line_in_the_log(tmp_path, caplog):
    (tmp_path / "a file").touch()
    assert encode(tmp_path / "a file")[0].tobytes() == Counter().encode(LINES, "en").tobytes()
    assert "embeddings not kept" in caplog.text


def encode_often(folder, limit):
    with patch("ems.bench.encoders.log.warning", side_effect=AssertionError):  # no damage
        for at in range(40):
            lines = [str(at % 5)] * 10_000
            vectors, _ = encode(folder, lines, limit=limit)
            assert vectors.tobytes() == Counter().encode(lines, "en").tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("limit", [10 * MB, 300_000])  # with room for all, and for two of five
def test_concurrent_jobs_only_see_whole_entries(tmp_path, limit):
    with get_context("fork").Pool(3) as pool:
        pool.starmap(encode_often, [(tmp_path, limit)] * 3)
    assert not list(tmp_path.glob(".*"))
