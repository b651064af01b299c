"""Laws of the cache of embeddings: it never changes a vector, sees what is damaged, is bounded."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from safetensors.numpy import load_file, save_file

from ems.bench.cache import CachedEncoder, cached, key_of, make_room

MB = 1_000_000
LINES = ["one", "two", "", "two", "ö\u0301 三"]


class Counter:
    """An encoder whose vectors depend on the whole call; it counts what it was asked."""

    identity = "counter"

    def __init__(self, factor=1.0, dtype=np.float32):
        self.calls, self.factor, self.dtype = [], factor, dtype

    def encode(self, lines, language, what="encode"):
        self.calls.append((language, list(lines)))
        numbers = [[len(line), len(lines), self.factor] for line in lines]
        return np.array(numbers, self.dtype).reshape(len(lines), 3)


def over(encoder, folder, limit=MB, identity="x"):
    return CachedEncoder(encoder, identity, folder, limit)


def entries(folder):
    return sorted(folder.glob("*.safetensors"))


# --- the same vectors


def test_what_is_read_back_is_what_was_encoded_bit_for_bit(tmp_path):
    encoder = Counter(factor=np.float32(1 / 3))
    first = over(encoder, tmp_path).encode(LINES, "en")
    again = over(Counter(factor=7), tmp_path).encode(LINES, "en")
    assert again.tobytes() == first.tobytes()
    assert again.dtype == np.float32
    assert len(encoder.calls) == 1


@pytest.mark.parametrize(
    ("identity", "language", "lines"),
    [
        ("y", "en", LINES),
        ("x", "de", LINES),
        ("x", "en", LINES[::-1]),
        ("x", "en", LINES[:-1]),
        ("x", "en", ["onetwo", "", "", "two", "ö\u0301 三"]),
        ("x", "en", [*LINES, ""]),
    ],
)
def test_another_model_language_text_or_order_is_encoded_itself(
    tmp_path, identity, language, lines
):
    over(Counter(), tmp_path).encode(LINES, "en")
    other = Counter(factor=2)
    found = over(other, tmp_path, identity=identity).encode(lines, language)
    assert other.calls == [(language, lines)]
    assert found.tobytes() == Counter(factor=2).encode(lines, language).tobytes()


def test_no_two_of_many_near_calls_share_a_key():
    calls = [
        (identity, language, lines)
        for identity in ("a", "ab")
        for language in ("b", "", "de")
        for lines in ([], [""], ["", ""], ["a"], ["a", "b"], ["ab"], ["b", "a"])
    ]
    assert len({key_of(*call) for call in calls}) == len(calls)


def test_no_line_at_all_comes_back_as_it_was(tmp_path):
    first = over(Counter(), tmp_path).encode([], "en")
    assert over(Counter(), tmp_path).encode([], "en").shape == first.shape == (0, 3)


def test_an_encoder_without_identity_and_a_cache_without_room_are_no_cache(tmp_path):
    class Nameless:
        def encode(self, lines, language, what="encode"):
            return np.zeros((len(lines), 1), np.float32)

    nameless, counter = Nameless(), Counter()
    assert cached(nameless, tmp_path, 5) is nameless
    assert cached(counter, tmp_path, 0) is counter
    assert cached(counter, tmp_path, 5).limit == 5 * MB


# --- what is damaged


def spoil_bytes(path):
    content = bytearray(path.read_bytes())
    content[-2] ^= 0xFF
    path.write_bytes(content)


def spoil_key(path):
    tensors = load_file(path)
    save_file(tensors, path, {"key": "0" * 64})


def spoil_rows(path):
    tensors = {"vectors": load_file(path)["vectors"][1:].copy()}
    save_file(tensors, path)


DAMAGE = {
    "a flipped bit": spoil_bytes,
    "another key": spoil_key,
    "fewer rows": spoil_rows,
    "cut": lambda path: os.truncate(path, path.stat().st_size - 5),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no tensors"),
    "another tensor": lambda path: save_file({"x": np.zeros(3, np.float32)}, path),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_noticed_told_and_encoded_again(tmp_path, how, caplog):
    first = over(Counter(), tmp_path).encode(LINES, "en")
    (path,) = entries(tmp_path)
    DAMAGE[how](path)
    encoder = Counter()
    assert over(encoder, tmp_path).encode(LINES, "en").tobytes() == first.tobytes()
    assert len(encoder.calls) == 1
    assert f"{path}: damaged" in caplog.text
    assert over(encoder, tmp_path).encode(LINES, "en").tobytes() == first.tobytes()
    assert len(encoder.calls) == 1  # it is whole again


def test_the_entry_of_another_call_under_this_ones_name_is_noticed(tmp_path, caplog):
    over(Counter(), tmp_path).encode(LINES, "en")
    (path,) = entries(tmp_path)
    over(Counter(), tmp_path).encode(LINES[::-1], "en")
    (other,) = [entry for entry in entries(tmp_path) if entry != path]
    path.write_bytes(other.read_bytes())
    encoder = Counter()
    over(encoder, tmp_path).encode(LINES, "en")
    assert len(encoder.calls) == 1
    assert "its key or its checksum is another one" in caplog.text


# --- room


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    size = None
    for at in range(4):
        over(Counter(), tmp_path).encode([f"text {at}"] * 50, "en")
        (newest,) = set(entries(tmp_path)) - {p for p, _ in (size or [])}
        os.utime(newest, ns=(at, at))
        size = [*(size or []), (newest, newest.stat().st_size)]
    first, second, third, last = (path for path, _ in size)
    over(Counter(), tmp_path).encode(["text 0"] * 50, "en")  # used: now it is the newest
    make_room(tmp_path, 2 * size[0][1])
    assert set(entries(tmp_path)) == {first, last}
    assert not second.exists()
    assert not third.exists()


def test_the_folder_never_outgrows_its_limit(tmp_path):
    limit = 4000
    for at in range(30):
        over(Counter(), tmp_path, limit).encode([f"text {at}"] * 50, "en")
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit
    assert len(entries(tmp_path)) > 1


def test_what_would_fill_more_than_half_of_it_is_not_kept(tmp_path):
    over(Counter(), tmp_path, 1000).encode(["text"] * 50, "en")
    assert not tmp_path.exists() or entries(tmp_path) == []


def test_what_killed_writers_left_goes_too(tmp_path):
    left = tmp_path / ".0123.part"
    left.write_bytes(b"x" * 5000)
    os.utime(left, ns=(0, 0))
    over(Counter(), tmp_path, 4000).encode(["text"] * 50, "en")
    assert not left.exists()
    assert len(entries(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_costs_a_line_in_the_log_and_nothing_else(tmp_path, caplog):
    place = tmp_path / "a file"
    place.write_text("")
    found = over(Counter(), place).encode(LINES, "en")
    assert found.tobytes() == Counter().encode(LINES, "en").tobytes()
    assert "embeddings not kept" in caplog.text


# --- jobs side by side

WRITER = """
import sys, numpy as np
from pathlib import Path
from ems.bench.cache import CachedEncoder

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
    jobs = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for job in jobs:
        said = job.communicate(timeout=120)[1]
        assert job.returncode == 0, said
        assert "damaged" not in said
    assert not list(Path(tmp_path).glob(".*"))


def test_an_encoder_that_counts_its_tokens_does_so_behind_a_cache_too(tmp_path):
    class Counting(Counter):
        def token_counts(self, lines, language):
            return [len(line.split()) for line in lines]

    assert cached(Counting(), tmp_path, 5).token_counts(["a b", ""], "en") == [2, 0]
    assert not hasattr(cached(Counter(), tmp_path, 5), "token_counts")
