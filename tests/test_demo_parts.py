"""Laws of the parts that the demo corpus is made of: quotas, free files, the grammar."""

import pytest

from ems.base.errors import EmsError
from ems.corpora.demo.draw import compose, quotas
from ems.corpora.demo.free import read_free
from ems.corpora.demo.grammar import LANGUAGES, compile_template, read_category, read_lexicon


def test_quotas_are_equal_up_to_the_capacities():
    assert quotas([100, 5, 100], 45) == [20, 5, 20]
    with pytest.raises(EmsError, match="too small"):
        quotas([1, 2], 4)


HEAD = "\t".join(LANGUAGES)
GOOD = [HEAD] + ["\t".join(f"{code} {n}" for code in LANGUAGES) for n in range(120)]


def line_10(old, new):
    """The good lines with a change of the tenth."""
    return [*GOOD[:9], GOOD[9].replace(old, new), *GOOD[10:]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (GOOD, None),
        ([HEAD.replace("zh\tja", "ja\tzh"), *GOOD[1:]], "line 1: expected the tab-separated head"),
        (line_10("ar 8", "ar 8\tmore"), "line 10: expected 8 cells, found 9"),
        (line_10("de 8", ""), "line 10: de is empty"),
        (line_10("fr 8", "fr  8"), "line 10: fr .* stray spaces"),
        (line_10("ru 8", "ru 7"), "lines 9 and 10 .* same in ru"),
        ([*GOOD[:9], "", *GOOD[9:]], "line 10: expected 8 cells, found 1"),
        (GOOD[:50], "expected at least 120 sentences, found 49"),
        (None, "no such file"),
        (["\udcff\udcfe"], "expected UTF-8"),
    ],
)
def test_a_malformed_free_file_is_an_error_that_names_the_line(tmp_path, lines, message):
    path = tmp_path / "free.tsv"
    if lines:
        path.write_text("\n".join(lines) + "\n", "utf-8", "surrogateescape")
    if message is None:
        assert len(read_free(path)) == 120
        return
    with pytest.raises(EmsError, match=message):
        read_free(path)


def test_a_cell_with_a_form_too_few_is_an_error(tmp_path):
    path = tmp_path / "thing.tsv"
    path.write_text("en:a,all\tde\tfr\tes\tru\tzh\tja\tar\na/b\t" + "\t".join("cdefghi") + "\n")
    assert read_category(path).column("en", "all") == ["b"]
    path.write_text(path.read_text().replace("a,all", "a,all,of"))
    with pytest.raises(EmsError, match="line 2: expected the forms a, all, of, found 'a/b'"):
        read_category(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"de": "{pet.acc} schläft."}, "no such slot or form"),
        ({"de": "Schläft."}, "de: slots .* do not all appear"),
        ({"de": "{pet} schläft {pet."}, "do not all appear, or a typo"),
    ],
)
def test_a_frame_with_a_wrong_slot_is_an_error(change, message):
    frames = dict.fromkeys(LANGUAGES, "{pet}.") | change
    with pytest.raises(EmsError, match=message):
        compile_template("sleeps", False, frames, read_lexicon())


def test_a_frame_may_be_in_a_language_of_the_benchmark_alone_too(tmp_path):
    rows = [
        "\t".join([*(f"{code} {n}" for code in LANGUAGES), f"il {n}/del {n}"]) for n in range(2)
    ]
    path = tmp_path / "pet.tsv"
    path.write_text("\n".join(["\t".join([*LANGUAGES, "it:nom,of"]), *rows]) + "\n", "utf-8")
    lexicon, frames = {"pet": read_category(path)}, dict.fromkeys(LANGUAGES, "{pet}.")
    plain = compile_template("here", True, frames, lexicon)
    both = compile_template("here", True, frames | {"it": "Ecco {pet}, {pet.of}."}, lexicon)
    assert compose(plain, (1,)).texts == {code: f"{code.capitalize()} 1." for code in LANGUAGES}
    assert compose(both, (1,)).texts == compose(plain, (1,)).texts | {"it": "Ecco il 1, del 1."}


def test_a_frame_file_of_some_languages_is_refused_where_one_lacks_or_is_too_many():
    frames, lexicon = dict.fromkeys(("en", "de"), "{pet}."), read_lexicon()
    template = compile_template("here", True, frames, lexicon, ("en", "de"))
    assert set(compose(template, (0,)).texts) == {"en", "de"}
    for languages in (("en",), ("en", "de", "ja"), ("de", "en"), LANGUAGES):
        with pytest.raises(EmsError, match=r"template here: expected .*, found en, de"):
            compile_template("here", True, frames, lexicon, languages)
