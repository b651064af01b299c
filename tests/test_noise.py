"""Laws of the filters for noisy text: by language, by a model's cosine, by programs. Each removes
what it says, counts it with examples, and keeps the rest as it was."""

import json
import logging
from collections import Counter
from importlib.util import find_spec

import pytest
from conftest import ROOT, needs
from made.corpora import write_form
from made.models import write_model
from made.text import cleaned, tiny
from made.text import filtered as filtered_pairs

from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.config.text import CleanSettings, CommandFilter, LanguageFilter, SimilarityFilter
from ems.corpora.own import own_files
from ems.text.commands import check_commands
from ems.text.evalkeys import write_keys
from ems.text.filters import MACROLANGUAGES, LanguageCheck, unknown
from ems.use.encoder import Encoder, score

GERMAN = ["Die Kinder spielen nach der Schule im Garten.", "Wir haben gestern kein Brot gekauft."]
ENGLISH = ["The children play in the garden after school.", "We did not buy any bread yesterday."]
FRENCH = ["Les enfants jouent dans le jardin après l'école.", "Nous n'avons pas acheté de pain."]
CHINESE = ["孩子们放学后在花园里玩耍。", "我们昨天没有买面包。"]


@pytest.fixture
def lid():
    needs(find_spec("py3langid"), "py3langid is not installed: pip install -e '.[lid]'")


def identified(pairs, sides=("de", "en"), **settings):
    """((first, second) that stay, report) of pairs that are filtered by language alone."""
    return filtered_pairs(pairs, sides, language=LanguageFilter(**settings))


# --- by language

RIGHT = list(zip(GERMAN, ENGLISH, strict=True))
WRONG = [*zip(GERMAN, FRENCH, strict=True), *zip(CHINESE, ENGLISH, strict=True)]
WRONG += [(GERMAN[0], GERMAN[0]), (ENGLISH[1], FRENCH[1])]
TURNED = list(zip(ENGLISH, GERMAN, strict=True))


def test_a_side_in_another_language_takes_the_pair_with_it(lid):
    kept, report = identified([*WRONG, *RIGHT])
    assert kept == RIGHT
    assert +report.removed == Counter(language=len(WRONG))
    assert [line for line, _ in report.examples["language"]] == [1, 2, 3]


def test_swapped_sides_are_counted_by_themselves_or_put_in_order(lid):
    kept, report = identified([*TURNED, *WRONG, *RIGHT])
    assert kept == RIGHT
    assert +report.removed == Counter(language=len(WRONG), swapped=len(TURNED))
    kept, report = identified([*TURNED, *WRONG, *RIGHT], swapped="swap")
    assert kept == RIGHT + RIGHT
    assert +report.removed == Counter(language=len(WRONG))
    assert report.changed == Counter(swapped=len(TURNED))


def test_what_is_no_language_and_a_language_that_is_not_known_stay(lid):
    assert unknown(["de", "xq", "nb", "zh"]) == ["xq"]
    numbers = [("3,141.59 (27/11)", "https://a.example/b?c=1"), ("...", "!"), ("Ja", "Yes")]
    assert identified(numbers)[0] == numbers
    pairs = [(FRENCH[0], "any"), (CHINESE[0], GERMAN[0])]
    assert identified(pairs, sides=("xq", "xr"))[0] == pairs
    kept, report = identified([(FRENCH[0], GERMAN[0]), (FRENCH[0], ENGLISH[0])], ("xq", "en"))
    assert kept == [(FRENCH[0], ENGLISH[0])]
    assert +report.removed == Counter(language=1)


def test_every_language_of_the_table_is_known_and_its_own_macrolanguage_stays(lid):
    from ems.config.languages import load_languages

    assert unknown(load_languages()) == []
    croatian = "Djeca se poslije škole igraju u vrtu i čekaju roditelje."
    for code in ("hr", "sr", "bs"):
        assert LanguageCheck([code], LanguageFilter(threshold=0)).others([(croatian,)]) == [("",)]
    ((other,),) = LanguageCheck(["sl"], LanguageFilter()).others([(croatian,)])
    assert other in MACROLANGUAGES[0].split()


def test_a_higher_threshold_never_takes_more(lid):
    counts = [identified([*WRONG, *RIGHT], threshold=at)[1].kept for at in (0, 0.4, 0.8, 1)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == len(WRONG) + len(RIGHT)


# --- by a model and by programs, in the whole stage

ROWS = [(f"gut {at}", f"good {at}") for at in range(60)]


def stage(folder, rows, name="Mine", **settings):
    """(the pairs that stay, the report) of the cleaning stage with some filters."""
    own = Corpus(
        name, "own", "", True, ("de-en",), None,
        paths={"de-en": (write_form(folder, "tsv", ("de", "en"), rows),)},
    )  # fmt: skip
    keys = folder / "keys.tsv"
    write_keys({}, keys)
    experiment = tiny(own, decontaminate={"against": []}, clean=settings)
    lines, entry = cleaned(experiment, own_files(own, "de-en"), keys)
    assert [rows[int(line) - 1] for *_, line in lines] == [tuple(pair) for *pair, _ in lines]
    assert not list(folder.glob(".*"))
    return [tuple(line[:2]) for line in lines], entry


def filtered(folder, command, rows=ROWS, parameters=(), values=None, kind="bilingual", **more):
    """The stage with a filter of OpusCleaner."""
    path = folder / "own filter.json"
    description = {"type": kind, "command": command, "parameters": dict(parameters)}
    path.write_text(json.dumps(description))
    return stage(
        folder, rows, commands=[CommandFilter(filter=str(path), parameters=values or {}, **more)]
    )


def test_a_model_keeps_the_pairs_whose_cosine_reaches_the_threshold(tmp_path):
    words = [f"{first} {second}" for first in ("ka", "lo", "mi") for second in ("ne", "ru", "so")]
    model = write_model(tmp_path / "model", ["de", "en"], words * 9, 30)
    rows = [(one, other) for one in words for other in words]
    cosines = score(Encoder(model), *zip(*rows, strict=True))
    kept, entry = stage(
        tmp_path, rows, similarity=SimilarityFilter(model=str(model), threshold=0.5)
    )
    assert kept == [row for row, cosine in zip(rows, cosines, strict=True) if cosine >= 0.5]
    assert 9 <= len(kept) < 81
    assert entry["removed"]["similarity"] == 81 - len(kept) == entry["read"] - entry["kept"]


def test_a_model_that_is_gone_is_one_error_and_nothing_is_written(tmp_path):
    with pytest.raises(EmsError, match=r"filter similarity: exit status 1; .* no such folder"):
        stage(tmp_path, ROWS, similarity=SimilarityFilter(model=str(tmp_path / "gone")))
    assert not (tmp_path / "out.tsv").exists()


def test_a_program_removes_rows_which_are_counted_with_examples(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "ems"):
        kept, entry = filtered(tmp_path, "grep -v 7")
    assert kept == [row for row in ROWS if "7" not in row[0]]
    assert entry["removed"]["own filter.json"] == len(ROWS) - len(kept) == 6
    shown = "removed as own filter.json: line 8: 'gut 7 | good 7'; line 18: 'gut 17 | good 17'"
    assert any(line.startswith(shown) for line in caplog.messages)


@pytest.mark.parametrize(
    ("command", "kept"),
    [("cat", ROWS), ("head -1", ROWS[:1]), ("tail -1", ROWS[-1:]), ("sed 3d", ROWS[:2] + ROWS[3:])],
)
def test_any_part_of_the_rows_may_stay(tmp_path, command, kept):
    assert filtered(tmp_path, command)[0] == kept


def test_equal_rows_are_as_many_as_the_program_leaves(tmp_path):
    rows = [("gut", "good")] * 3 + ROWS[:1] + [("gut", "good")] * 2
    assert filtered(tmp_path, "uniq", rows)[0] == [rows[0], ROWS[0], rows[0]]


def test_parameters_are_variables_of_the_shell_and_never_words_of_it(tmp_path):
    parameters = {
        "WORD": {"type": "str", "default": "x"},
        "NOT": {"type": "bool", "default": False},
        "LINES": {"type": "int", "default": 3, "min": 1},
    }
    command = 'grep ${NOT:+-v} -F "$WORD" | head -$LINES'
    assert (
        filtered(tmp_path, command, ROWS, parameters, {"WORD": "good 1"})[0]
        == [row for row in ROWS if "good 1" in row[1]][:3]
    )
    values = {"WORD": "gut 0\tgood 0", "NOT": True, "LINES": 99}
    assert filtered(tmp_path, command, ROWS, parameters, values)[0] == ROWS[1:]
    odd = "'; touch pwned; $(touch pwned)"
    rows = [(odd, "odd"), *ROWS]
    assert filtered(tmp_path, command, rows, parameters, {"WORD": odd})[0] == rows[:1]
    assert not list(tmp_path.rglob("pwned"))
    as_yaml = 'test "$PARAMETERS_AS_YAML" = \'{"WORD": "a", "NOT": false, "LINES": 3}\' && cat'
    assert filtered(tmp_path, as_yaml, ROWS, parameters, {"WORD": "a"})[0] == ROWS


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cat; echo it broke >&2; exit 3", r"exit status 3; the end of its stderr: it broke"),
        ("false | cat", r"exit status 1; the end of its stderr: \(nothing\)"),
        ("no-such-program", r"exit status 127; .*no-such-program"),
        ("kill -9 $$", r"exit status -9"),
        ("tac", r"which it did not read, or not in this order"),
        ("sed s/gut/bad/", r"it wrote 'bad 0\\tgood 0\\n', which it did not read"),
        ("cat >/dev/null", r"cleaning removed all 60 pairs: .*'own filter\.json': 60"),
        ("cat; echo more", r"it wrote 'more\\n', which it did not read"),
    ],
)
def test_a_program_that_fails_or_changes_rows_is_one_error(tmp_path, command, words):
    with pytest.raises(EmsError, match=words):
        filtered(tmp_path, command)
    assert {path.name for path in tmp_path.iterdir()} == {
        "mine.de-en.tsv", "keys.tsv", "own filter.json"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "values", "words"),
    [
        ({}, {"A": 1}, r"parameters: .*own filter\.json has no A; its parameters: none"),
        ({"A": {"type": "int"}}, {"A": "x"}, r"parameters\.A: found 'x', expected int"),
        ({"A": {"type": "int"}}, {"A": True}, r"parameters\.A: found True, expected int"),
        ({"A": {"type": "float", "max": 1}}, {"A": 2.5}, r"found 2\.5, expected from None to 1"),
        ({"A": {"type": "str", "allowed_values": ["b"]}}, {"A": "c"}, r"allowed values: b"),
        ({"A": {"type": "str", "required": True, "default": None}}, {}, r"A: this key is missing"),
        ({"A B": {}}, {}, r"expected the name of a variable"),
    ],
)
def test_parameters_that_do_not_fit_are_one_error(tmp_path, parameters, values, words):
    with pytest.raises(EmsError, match=words):
        filtered(tmp_path, "cat", parameters=parameters, values=values)


def test_a_filter_of_one_language_is_refused(tmp_path):
    with pytest.raises(EmsError, match=r"clean\.commands\.0\.filter: .*is monolingual; expected a"):
        filtered(tmp_path, "cat", kind="monolingual")


def test_a_filter_of_other_corpora_leaves_this_one_alone(tmp_path):
    assert filtered(tmp_path, "false", corpora=["Other"])[0] == ROWS
    assert filtered(tmp_path, "head -1", corpora=["Other", "Mine"])[0] == ROWS[:1]


def test_our_own_filter_is_a_filter():
    own = str(ROOT / "ems/use/ems_score.json")
    filters = [CommandFilter(filter=own, parameters={"MODEL": "m", "THRESHOLD": 0.7})]
    (command,) = check_commands(CleanSettings(commands=filters))
    assert command.reason == "ems_score.json"
    assert command.folder == ROOT / "ems/use"
    assert "MODEL=m; THRESHOLD=0.7; SRCLANG=''; " in command.words[-1]
    with pytest.raises(EmsError, match=r"MODEL: this key is missing"):
        check_commands(CleanSettings(commands=[CommandFilter(filter=own)]))
