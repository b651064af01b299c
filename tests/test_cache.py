"""Laws of the cache of embeddings: it never changes a vector, sees what is damaged, is bounded."""

import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from safetensors.numpy import load_file, save_file

from ems.bench.encoders import CachedEncoder, cached, key_of, make_room

MB = 1_000_000
LINES = ["one", "two", "", "two", "ö\u0301 三"]


class Counter:
    """An encoder whose vectors depend on the whole call; it counts what it was asked."""

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


# --- the same vectors


def test_what_is_read_back_is_what_was_encoded_bit_for_bit(tmp_path):
    first, calls = encode(tmp_path, encoder=Counter(np.float32(1 / 3)))
    again, none = encode(tmp_path, encoder=Counter(7))
    assert again.tobytes() == first.tobytes()
    assert again.dtype == np.float32
    assert (len(calls), none) == (1, [])
    assert encode(tmp_path, [])[0].shape == encode(tmp_path, [])[0].shape == (0, 3)


@pytest.mark.parametrize(
    ("identity", "language", "lines"),
    [("y", "en", LINES), ("x", "de", LINES), ("x", "en", LINES[::-1]), ("x", "en", LINES[:-1])],
)
def test_another_model_language_text_or_order_is_encoded_itself(
    tmp_path, identity, language, lines
):
    encode(tmp_path)
    vectors, calls = encode(tmp_path, lines, language, Counter(2), identity=identity)
    assert calls == [(language, lines)]
    assert vectors.tobytes() == Counter(2).encode(lines, language).tobytes()


def test_no_two_of_many_near_calls_share_a_key():
    calls = [
        (identity, language, lines)
        for identity in ("a", "ab")
        for language in ("b", "", "de")
        for lines in ([], [""], ["", ""], ["a"], ["a", "b"], ["ab"], ["b", "a"])
    ]
    assert len({key_of(*call) for call in calls}) == len(calls)


def test_an_encoder_keeps_its_abilities_and_one_without_identity_or_room_has_no_cache(tmp_path):
    class Nameless:
        encode = Counter.encode

    class Empty(Nameless):
        identity = ""

    class Counting(Counter):
        def token_counts(self, lines, language):
            return [len(line.split()) for line in lines]

    for nameless in (Nameless(), Empty()):
        assert cached(nameless, tmp_path, 5) is nameless
    counter = Counter()
    assert cached(counter, tmp_path, 0) is counter
    assert cached(counter, tmp_path, 5).limit == 5 * MB
    assert cached(Counting(), tmp_path, 5).token_counts(["a b", ""], "en") == [2, 0]
    assert not hasattr(cached(counter, tmp_path, 5), "token_counts")


# --- what is damaged


def spoil_bytes(path):
    content = bytearray(path.read_bytes())
    content[-2] ^= 0xFF
    path.write_bytes(content)


def swap(path):
    """Put the entry of another call, which is whole, in its place."""
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
    "another tensor": lambda path: save_file({"x": np.zeros(3, np.float32)}, path),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_noticed_told_and_encoded_again(tmp_path, how, caplog):
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


def test_what_was_not_used_for_longest_goes_first(tmp_path):
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


def test_what_would_fill_more_than_half_of_it_is_not_kept(tmp_path):
    encode(tmp_path, ["text"] * 50, limit=1000)
    assert entries(tmp_path) == []


def test_a_folder_that_cannot_be_written_costs_a_line_in_the_log_and_nothing_else(tmp_path, caplog):
    place = tmp_path / "a file"
    place.write_text("")
    assert encode(place)[0].tobytes() == Counter().encode(LINES, "en").tobytes()
    assert "embeddings not kept" in caplog.text


# --- jobs side by side

WRITER = """
import sys, numpy as np
from pathlib import Path
from ems.bench.encoders import CachedEncoder

class Slow:
    def encode(self, lines, language, what="encode"):
        return np.arange(len(lines) * 64, dtype=np.float32).reshape(-1, 64)

for at in range(40):
    lines = [str(at % 5)] * 500
    found = CachedEncoder(Slow(), "x", Path(sys.argv[1]), int(sys.argv[2])).encode(lines, "en")
    assert found.tobytes() == Slow().encode(lines, "en").tobytes()
"""


@pytest.mark.parametrize("limit", [10 * MB, 300_000])  # with room for all, and for two of five
def test_jobs_side_by_side_only_ever_see_whole_entries(tmp_path, limit):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER, str(tmp_path), str(limit)]
    call = {"env": environment, "stderr": subprocess.PIPE, "text": True}
    for job in [subprocess.Popen(command, **call) for _ in range(3)]:
        said = job.communicate(timeout=120)[1]
        assert job.returncode == 0, said
        assert "damaged" not in said
    assert not list(tmp_path.glob(".*"))
