"""Laws of the settings files: YAML 1.2, finite numbers, text as keys, and one line for what is
neither."""

import time

import pytest

from ems.base.errors import EmsError
from ems.config.load import load_yaml


def loaded(folder, text):
    """What a YAML file says, given as text or as bytes."""
    path = folder / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_yaml(path)


def refused(folder, text):
    """The one short line with which a file is refused."""
    with pytest.raises(EmsError) as error:
        loaded(folder, text)
    message = str(error.value)
    assert message.startswith(f"{folder / 'x.yaml'}: ")
    assert "\n" not in message
    assert len(message) < 500
    return message


# --- numbers


INFINITE = [".nan", ".NaN", ".NAN", ".inf", "-.Inf", "+.INF", "1.0e+999", "-1e999", "!!float x"]


@pytest.mark.parametrize("number", INFINITE)
def test_a_number_that_is_not_finite_is_refused_with_its_line(tmp_path, number):
    message = refused(tmp_path, f"a: 1\nb:\n  - 2\n  - {number}\n")
    assert f"expected a finite number, found {number.removeprefix('!!float ')}" in message
    assert "line 4" in message


VALUES = {
    None: ["~", "Null", ""],
    True: ["true"],
    False: ["FALSE"],
    10: ["010"],
    -12: ["-12"],
    7: ["+7"],
    15: ["0o17"],
    255: ["0xff"],
    1000: ["!!int '1000'"],
    0.001: ["1e-3"],
    2.0: ["2."],
    -0.5: ["-.5"],
    150.0: ["1.5E+2"],
    "1": ["'1'", "!!str 1"],
}
# YAML 1.1 reads booleans, 90, 3, 1000 and a date here
TEXTS = ["no", "off", "yes", "On", "n", "1:30", "0b11", "1_000", "2024-01-01", "=", "ü"]
TEXTS += ["1.2.3", "v1", "nan", "inf", "tRUE"]


@pytest.mark.parametrize(
    ("text", "value"),
    [(text, value) for value, texts in VALUES.items() for text in texts]
    + [(text, text) for text in TEXTS],
)
def test_a_value_is_what_yamls_core_schema_makes_of_it(tmp_path, text, value):
    result = loaded(tmp_path, f"a: {text}\n")["a"]
    assert result == value
    assert type(result) is type(value)


TAGGED = ["!!int x", "!!bool maybe", "!!null x", "!!timestamp x", "!!python/tuple [1]"]


@pytest.mark.parametrize("text", ["9" * 5000, *TAGGED], ids=lambda text: text[:20])
def test_what_the_core_schema_cannot_make_is_one_line(tmp_path, text):
    assert "line 2" in refused(tmp_path, f"a: 1\nb: {text}\n")


# --- keys


NO_TEXT = ["1", "1.5", "null", "~", "true", "0x10", ".nan", "[a, b]", "{a: 1}"]


@pytest.mark.parametrize("key", NO_TEXT)
def test_a_key_that_is_no_text_is_refused_with_its_line_and_the_quotes_it_needs(tmp_path, key):
    message = refused(tmp_path, f"systems:\n  ? {key}\n  : {{}}\n")
    assert "line 2" in message
    assert "quotes" in message


@pytest.mark.parametrize("key", ["no", "on", "2024-01-01", "1k", "1:30", "'1'", '"true"', "ü"])
def test_a_key_that_is_text_needs_no_quotes(tmp_path, key):
    assert loaded(tmp_path, f"{key}: a\n") == {key.strip("'\""): "a"}


def test_a_key_that_is_there_twice_is_refused_however_many_there_are(tmp_path):
    keys = "".join(f"k{number}: 1\n" for number in range(20_000))
    assert len(loaded(tmp_path, keys)) == 20_000
    message = refused(tmp_path, keys + "k7: 2\n")
    assert "the key k7 is there twice" in message
    assert "line 20001" in message


# --- the file as a whole


def test_anchors_and_merges_work_and_what_is_written_wins(tmp_path):
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}\nd: [*a, *a]\n"
    value = loaded(tmp_path, text)
    assert value["b"] == {"x": 1, "y": 3}
    assert value["c"] == {"x": 1, "y": 2, "z": 4}
    assert value["d"] == [{"x": 1, "y": 2}] * 2


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
    "a cycle": (b"a: &a [*a]\n", "the alias *a contains itself"),
    "a cycle of mappings": (b"a: &a {b: {c: [*a]}}\n", "the alias *a contains itself"),
    "a merge with itself": (b"a: &a {<<: *a}\n", "the alias *a contains itself"),
    "an unknown alias": (b"a: *b\n", "undefined alias"),
    "50 MB in one value": (b"a: " + b"x" * 50_000_000, "found a file of over 1,000,000 bytes"),
    "two documents": (b"a: 1\n---\nb: 2\n", "not valid YAML"),
    "a list": (b"- a\n- b\n", "expected `key: value` lines, found list"),
    "text": (b"a\n", "expected `key: value` lines, found str"),
    "a number": (b"1\n", "expected `key: value` lines, found int"),
    "half": (b"seed: [1", "not valid YAML"),
    "a merge of text": (b"a: {<<: b}\n", "not valid YAML"),
    "half a character": (b'a: "\\ud800"\n', "found half of a character, \\ud800"),
    "half a character as a key": (b'"\\udfff": 1\n', "found half of a character, \\udfff"),
    "a tab": (b"a:\n\t- b\n", "not valid YAML"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_settings_file_holds_is_one_line_at_once(tmp_path, content, words):
    start = time.monotonic()
    assert words in refused(tmp_path, content)
    assert time.monotonic() - start < 5
