"""Laws of the settings files: YAML 1.2, finite numbers, text as keys, and one line for what is
neither."""

import time

import pytest
from made import golden

from ems.base.errors import EmsError
from ems.config.load import load_yaml


def loaded(folder, text):
    path = folder / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_yaml(path)


def refused(folder, text):
    with pytest.raises(EmsError) as error:
        loaded(folder, text)
    message = str(error.value)
    assert message.startswith(f"{folder / 'x.yaml'}: ")
    assert "\n" not in message
    assert len(message) < 500
    return message


def test_a_line_is_what_yamls_core_schema_makes_of_it(tmp_path):
    """YAML 1.1 reads booleans in `no`, 90 in `1:30`, 3 in `0b11`, 1000 in `1_000`, and dates."""

    def read(line):
        try:
            return repr(loaded(tmp_path, line))
        except EmsError:
            return refused(tmp_path, line).removeprefix(f"{tmp_path}/")

    golden.replay("settings/yaml.txt", read)
    message = refused(tmp_path, f"a: 1\nb:\n  - {'9' * 5000}\n")
    assert "expected a finite number, found 9999" in message
    assert "line 3" in message


def test_a_key_that_is_there_twice_is_refused_however_many_there_are(tmp_path):
    keys = "".join(f"k{number}: 1\n" for number in range(20_000))
    assert len(loaded(tmp_path, keys)) == 20_000
    message = refused(tmp_path, keys + "k7: 2\n")
    assert "the key k7 is there twice" in message
    assert "line 20001" in message


def test_a_missing_file_and_one_that_says_nothing_are_one_line(tmp_path):
    with pytest.raises(EmsError, match=r"y\.yaml: no such file"):
        load_yaml(tmp_path / "y.yaml")
    for text in ("", "\n\n", "# only a comment\n", "---\n", "\ufeff"):
        assert refused(tmp_path, text).endswith(": the file is empty")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    assert loaded(tmp_path, "\ufeffa: 1\n") == {"a": 1}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"k{number}: &k{number} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n"
    for number, before in enumerate(["a", *(f"k{number}" for number in range(8))])
)
REFUSED = {
    "UTF-16": ("a: 1\n".encode("utf-16"), "not UTF-8 at byte 0"),
    "UTF-16 without a mark": ("a: 1\n".encode("utf-16-le"), "not valid YAML"),
    "Latin-1": ("a: ü\n".encode("latin-1"), "not UTF-8 at byte 3"),
    "a NUL byte": (b"a: \0\n", "not valid YAML"),
    "brackets": (b"a: " + b"[" * 10_000, "nested deeper than 100 levels"),
    "closed brackets": (b"a: " + b"[" * 10_000 + b"]" * 10_000, "nested deeper"),
    "braces": (b"a: " + b"{b: " * 10_000, "nested deeper"),
    "dashes": (b"a:\n" + b"- " * 10_000, "nested deeper"),
    "indentation": ("".join(" " * depth + "a:\n" for depth in range(1_000)), "nested deeper"),
    "a bomb of aliases": (BOMB, "more than 100,000 values"),
    "a bomb of merges": (MERGES, "more than 100,000 values"),
    "50 MB in one value": (b"a: " + b"x" * 50_000_000, "found a file of over 1,000,000 bytes"),
    "two documents": (b"a: 1\n---\nb: 2\n", "not valid YAML"),
    "a tab": (b"a:\n\t- b\n", "not valid YAML"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_settings_file_holds_is_one_line_at_once(tmp_path, content, words):
    start = time.monotonic()
    assert words in refused(tmp_path, content)
    assert time.monotonic() - start < 5
