"""Laws of envs/vectors.py: the mean and the sum of the vectors of a line's known words."""

import gzip
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import numpy as np
import pytest
from conftest import ROOT, needs

from ems.base.errors import EmsError
from ems.bench.peers import CommandEncoder

SCRIPT = ROOT / "envs/vectors.py"
TABLE = {"über": [1.5, -2, 0.25], "ab": [3, 4, 5], "3": [0.1, 0.2, 0.3], "苹果": [7, 0, -7]}


def text_of(table, width=3):
    rows = [" ".join([word, *map(repr, numbers)]) for word, numbers in table.items()]
    return "\n".join([f"{len(table)} {width}", *rows]) + "\n"


def encoded(folder, lines, pooling="mean", language="de", suffix=".vec"):
    """Encode by the script's own `main`, without a process for each call."""
    spec = spec_from_file_location("vectors", SCRIPT)
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    table, out = folder / f"{language}{suffix}", folder / "out.npy"
    script.main([pooling, str(table), str(folder / "lines"), language, str(out)])
    return np.load(out)


def refusal(folder, content, lines=("ab",), name="de.vec"):
    content = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(content)
    with pytest.raises(SystemExit) as error:
        encoded(folder, lines, suffix=name.removeprefix("de"))
    assert "\n" not in str(error.value)
    return str(error.value)


LINES = ["Über AB, ab!", "3.3 ab_xyz", "none known", "", "(ÜBER)"]
WORDS = [["über", "ab", "ab"], ["3", "3", "ab"], [], [], ["über"]]


@pytest.mark.parametrize("suffix", [".vec", ".vec.gz"])
@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_a_row_is_the_mean_or_the_sum_of_the_known_words_and_zeros_without_one(
    tmp_path, pooling, suffix
):
    content = text_of(TABLE).encode()
    path = tmp_path / f"de{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    vectors = encoded(tmp_path, LINES, pooling, suffix=suffix)
    assert vectors.dtype == np.float32
    for row, words in zip(vectors, WORDS, strict=True):
        total = [sum(TABLE[word][at] for word in words) for at in range(3)]
        share = len(words) if pooling == "mean" and words else 1
        np.testing.assert_allclose(row, [value / share for value in total], rtol=1e-6)


def test_chinese_is_split_into_words(tmp_path):
    needs(find_spec("jieba"), "jieba")
    (tmp_path / "zh.vec").write_text(text_of(TABLE), encoding="utf-8")
    vectors = encoded(tmp_path, ["我喜欢吃苹果。"], "sum", "zh")
    assert vectors.tolist() == [TABLE["苹果"]]


def test_the_words_that_a_table_is_made_of_are_those_that_are_looked_up():
    lines = "".join(f"{line}\n" for line in ["Über AB, ab!", "e\u0301 हिन्दी l'été", "", "a\u2028b"])
    done = subprocess.run(
        [sys.executable, SCRIPT, "words", "de"], input=lines.encode(), capture_output=True
    )
    words = done.stdout.decode().split("\n")
    assert words == ["über ab ab", "e\u0301 हिन्दी l été", "", "a b", ""]


def test_entries_of_several_words_repeated_words_and_blanks_at_ends_change_nothing(tmp_path):
    head, *rows = text_of(TABLE).splitlines()
    odd = [head, "ab cd 9 9 9", *(f"{row} " for row in rows), "ab 8 8 8", "\ufffd 1 2 3"]
    expected, found = (
        _encoded(tmp_path / name, "\n".join(content))
        for name, content in (("plain", [head, *rows]), ("odd", odd))
    )
    assert found.tobytes() == expected.tobytes()


def _encoded(folder, content):
    folder.mkdir()
    (folder / "de.vec").write_text(content, encoding="utf-8")
    return encoded(folder, LINES)


def test_no_line_gives_no_row(tmp_path):
    (tmp_path / "de.vec").write_text(text_of(TABLE), encoding="utf-8")
    assert encoded(tmp_path, []).shape == (0, 3)


def test_as_a_command_it_reads_the_table_of_the_language(tmp_path):
    (tmp_path / "de.vec").write_text(text_of(TABLE), encoding="utf-8")
    files = f"{tmp_path}/{{language}}.vec {{lines}} {{language}} {{out}}"
    encoder = CommandEncoder(f"{sys.executable} {SCRIPT} sum {files}")
    assert encoder.encode(["3 unknown"], "de").tolist() == np.float32([TABLE["3"]]).tolist()
    with pytest.raises(EmsError, match=r"fr\.vec: no such file; expected the word vectors"):
        encoder.encode(["3"], "fr")


FOREIGN = [f"wort{at}" for at in range(100)]
BAD = [
    ("", "expected the number of words and the width in the first line, found ''"),
    ("ab 1 2 3\n", "in the first line, found 'ab 1 2 3'; write the table in the text format"),
    ("1 3\nab 1 2\n", "line 2: expected 3 finite numbers, found 2"),
    ("1 3\nab 1 2 x\n", "line 2: expected a word and 3 numbers"),
    ("1 3\nab 1 2 nan\n", "line 2: expected 3 finite numbers"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_a_damaged_table_is_an_error_of_one_line_with_its_place(tmp_path, content, message):
    assert re.search(f"de.vec.*{message}", refusal(tmp_path, content))


def test_a_table_that_knows_no_word_is_told(tmp_path):
    message = refusal(tmp_path, text_of(TABLE), FOREIGN)
    assert "expected vectors of words in lower case, found none of 100 words" in message


def test_a_cut_archive_is_told(tmp_path):
    noise = np.random.default_rng(0).random((300, 3))
    table = text_of({f"w{at}": row.tolist() for at, row in enumerate(noise)})
    message = refusal(tmp_path, gzip.compress(table.encode())[:2000], name="de.vec.gz")
    assert "de.vec.gz: cannot be read" in message
