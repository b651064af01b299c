"""Laws of the filters for noisy text: by language, by a model's cosine, by programs such as
`ems score`. Each removes what it says, counts it with examples, and changes no other row."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from conftest import ROOT
from made.corpora import write_form
from made.experiments import one_line
from made.models import write_model
from made.text import cleaned, tiny
from made.text import filtered as filtered_pairs

from ems.commands.cli import main
from ems.config.experiment import Corpus
from ems.config.languages import load_languages
from ems.config.text import CleanSettings, CommandFilter, LanguageFilter, SimilarityFilter
from ems.corpora.identifier import MACROLANGUAGES, unknown
from ems.corpora.own import own_files
from ems.text.commands import check_commands
from ems.text.evalkeys import write_keys
from ems.text.filters import LanguageCheck
from ems.use.encoder import Encoder, mine, score

GERMAN = ["Die Kinder spielen nach der Schule im Garten.", "Wir haben gestern kein Brot gekauft."]
ENGLISH = ["The children play in the garden after school.", "We did not buy any bread yesterday."]
FRENCH = ["Les enfants jouent dans le jardin après l'école.", "Nous n'avons pas acheté de pain."]
CHINESE = ["孩子们放学后在花园里玩耍。", "我们昨天没有买面包。"]
WORDS = [f"{first} {second}" for first in ("ka", "lo", "mi") for second in ("ne", "ru", "so")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("score") / "model", ["de", "en"], WORDS * 9, 30)


def identified(pairs, sides=("de", "en"), **settings):
    return filtered_pairs(pairs, sides, language=LanguageFilter(**settings))


# --- by language

RIGHT = list(zip(GERMAN, ENGLISH, strict=True))
WRONG = [*zip(GERMAN, FRENCH, strict=True), *zip(CHINESE, ENGLISH, strict=True)]
WRONG += [(GERMAN[0], GERMAN[0]), (ENGLISH[1], FRENCH[1])]
TURNED = list(zip(ENGLISH, GERMAN, strict=True))


def test_pairs_in_another_language_are_removed_and_swapped_ones_counted_or_turned():
    kept, report = identified([*WRONG, *TURNED, *RIGHT])
    assert kept == RIGHT
    assert [line for line, _ in report.examples["language"]] == [1, 2, 3]
    assert +report.removed == Counter(language=len(WRONG), swapped=len(TURNED))
    kept, report = identified([*TURNED, *WRONG, *RIGHT], swapped="swap")
    assert kept == RIGHT + RIGHT
    assert +report.removed == Counter(language=len(WRONG))
    assert report.changed == Counter(swapped=len(TURNED))


def test_text_without_a_language_and_unknown_languages_are_kept():
    assert unknown(["de", "xq", "nb", "zh"]) == ["xq"]
    numbers = [("3,141.59 (27/11)", "https://a.example/b?c=1"), ("...", "!"), ("Ja", "Yes")]
    assert identified(numbers)[0] == numbers
    pairs = [(FRENCH[0], "any"), (CHINESE[0], GERMAN[0])]
    assert identified(pairs, sides=("xq", "xr"))[0] == pairs
    kept, report = identified([(FRENCH[0], GERMAN[0]), (FRENCH[0], ENGLISH[0])], ("xq", "en"))
    assert kept == [(FRENCH[0], ENGLISH[0])]
    assert +report.removed == Counter(language=1)


def test_every_language_of_the_table_is_known_and_its_macrolanguage_is_kept():
    assert unknown(load_languages()) == []
    croatian = "Djeca se poslije škole igraju u vrtu i čekaju roditelje."
    for code in ("hr", "sr", "bs"):
        assert LanguageCheck([code], LanguageFilter(threshold=0)).others([(croatian,)]) == [("",)]
    ((other,),) = LanguageCheck(["sl"], LanguageFilter()).others([(croatian,)])
    assert other in MACROLANGUAGES[0].split()


def test_a_higher_threshold_never_removes_more():
    counts = [identified([*WRONG, *RIGHT], threshold=at)[1].kept for at in (0, 0.4, 0.8, 1)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == len(WRONG) + len(RIGHT)


# --- by a model and by programs, in the whole stage

ROWS = [(f"gut {at}", f"good {at}") for at in range(60)]


def stage(folder, rows, **settings):
    """(the pairs that stay, the report) of the cleaning stage with some filters."""
    paths = {"de-en": (write_form(folder, "tsv", ("de", "en"), rows),)}
    own = Corpus("Mine", "own", "", True, ("de-en",), None, paths=paths, accept="made rows")
    keys = folder / "keys.tsv"
    write_keys({}, keys)
    experiment = tiny(own, decontaminate={"against": []}, clean=settings)
    lines, entry = cleaned(experiment, own_files(own, "de-en"), keys)
    assert [rows[int(line) - 1] for *_, line in lines] == [tuple(pair) for *pair, _ in lines]
    assert not list(folder.glob(".*"))
    return [tuple(line[:2]) for line in lines], entry


def filtered(folder, command, rows=ROWS, parameters=(), values=None, **more):
    """The stage with a filter of OpusCleaner."""
    path = folder / "own filter.json"
    description = {"type": "bilingual", "command": command, "parameters": dict(parameters)}
    path.write_text(json.dumps(description))
    command = CommandFilter(filter=str(path), parameters=values or {}, **more)
    return stage(folder, rows, commands=[command])


@pytest.mark.slow
def test_a_model_keeps_pairs_from_the_threshold_on(model, tmp_path):
    rows = list(product(WORDS, WORDS))
    cosines = score(Encoder(model), *zip(*rows, strict=True))
    similarity = SimilarityFilter(model=str(model), threshold=0.5)
    kept, entry = stage(tmp_path, rows, similarity=similarity)
    assert kept == [row for row, cosine in zip(rows, cosines, strict=True) if cosine >= 0.5]
    assert 9 <= len(kept) < 81
    assert entry["removed"]["similarity"] == 81 - len(kept) == entry["read"] - entry["kept"]


def test_rows_that_a_program_removes_are_counted_with_examples(tmp_path, logged, caplog):
    kept, entry = filtered(tmp_path, "grep -v 7")
    assert kept == [row for row in ROWS if "7" not in row[0]]
    assert entry["removed"]["own filter.json"] == len(ROWS) - len(kept) == 6
    shown = "removed as own filter.json: line 8: 'gut 7 | good 7'; line 18: 'gut 17 | good 17'"
    assert shown in caplog.text


SAME = [("gut", "good")] * 3 + ROWS[:1] + [("gut", "good")] * 2


@pytest.mark.parametrize(
    ("command", "rows", "kept"),
    [
        ("cat", ROWS, ROWS),
        ("head -1", ROWS, ROWS[:1]),
        ("tail -1", ROWS, ROWS[-1:]),
        ("sed 3d", ROWS, ROWS[:2] + ROWS[3:]),
        ("uniq", SAME, [SAME[0], ROWS[0], SAME[0]]),
    ],
)
def test_a_program_may_keep_any_rows(tmp_path, command, rows, kept):
    assert filtered(tmp_path, command, rows)[0] == kept


def test_parameters_are_shell_variables_and_never_code(tmp_path):
    parameters = {"WORD": {"type": "str"}, "NOT": {"type": "bool", "default": False}}
    parameters |= {"LINES": {"type": "int", "default": 3, "min": 1}}
    odd = "'; touch pwned; $(touch pwned)"
    rows = [(odd, "odd"), *ROWS]

    def kept(command='grep ${NOT:+-v} -F "$WORD" | head -$LINES', **values):
        return filtered(tmp_path, command, rows, parameters, values)[0]

    assert kept(WORD="good 1") == [row for row in rows if "good 1" in row[1]][:3]
    assert kept(WORD="gut 0\tgood 0", NOT=True, LINES=99) == [rows[0], *ROWS[1:]]
    assert kept(WORD=odd) == rows[:1]
    assert not list(tmp_path.rglob("pwned"))
    as_yaml = 'test "$PARAMETERS_AS_YAML" = \'{"WORD": "a", "NOT": false, "LINES": 3}\' && cat'
    assert kept(as_yaml, WORD="a") == rows


def test_a_filter_of_other_corpora_is_not_applied(tmp_path):
    assert filtered(tmp_path, "false", corpora=["Other"])[0] == ROWS
    assert filtered(tmp_path, "head -1", corpora=["Other", "Mine"])[0] == ROWS[:1]


def test_our_own_filter_is_a_filter():
    def checked(**parameters):
        own = CommandFilter(filter=str(ROOT / "ems/use/ems_score.json"), parameters=parameters)
        return check_commands(CleanSettings(commands=[own]))

    (command,) = checked(MODEL="m", THRESHOLD=0.7)
    assert (command.reason, command.folder) == ("ems_score.json", ROOT / "ems/use")
    assert "MODEL=m; THRESHOLD=0.7; SRCLANG=''; " in command.words[-1]
    assert "MODEL: this key is missing" in one_line(checked)


# --- ems score between two pipes

ROW = b"ka ne\tka ne"  # scores 1 with any model


def piped(model, content, *flags, status=0):
    """What the command writes for a content of standard input, and its log."""
    log, (source, out) = io.StringIO(), (io.TextIOWrapper(io.BytesIO(x)) for x in (content, b""))
    with patch("sys.stdin", source), redirect_stdout(out), redirect_stderr(log):
        assert main(["score", "--model", str(model), *flags]) == status, log.getvalue()
    return out.buffer.getvalue(), log.getvalue()


@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_kept_rows_are_unchanged_bytes_in_order(model, margin):
    kept = [ROW + b"\r\n", b"lo ru\tlo ru\t third \tfourth\n", b"  mi so \tmi so\n"]
    kept += [ROW + b"\t\xff not read\n", b"ka so\tka so"]  # the last one without an end
    dropped = [b"ka ne\tlo so\n", b"mi so\t\n", b"\tlo so\n", b"\t\n"]
    bad = [b"one column\n", b"\n", b"\xff\tka\n", b"ka\tk\0a\n", b"ka\t" + b"x" * 1_000_001 + b"\n"]
    content = kept[:2] + bad[:2] + dropped[:2] + kept[2:3] + bad[2:] + dropped[2:] + kept[3:]
    flags = ("--margin", margin, "--threshold", "0.9999" if margin == "absolute" else "-9")
    if margin == "ratio":  # keep every row: an exact copy stands out least among neighbours
        kept = [row for row in content if row not in bad]
    out, log = piped(model, b"".join(content), *flags, "--bad", "skip")
    assert out == b"".join(kept)
    assert "2 bad lines skipped (one column, expected two or more): line 3, 4" in log
    assert log.count("1 bad lines skipped") == 3  # not UTF-8, a NUL, too long
    out, log = piped(model, b"".join(content), *flags, status=1)
    assert out == b""
    assert "error: standard input: line 3: one column, expected two or more; " in log
    assert piped(model, b"", "--margin", margin)[0] == b""


def test_a_pair_with_an_empty_side_scores_0_and_is_never_mined(model):
    first, second = ["ka ne", "", " ", "lo ru", "\u3000"], ["ka ne", "", "mi so", "", "lo ru"]
    encoder = Encoder(model)
    expected = score(encoder, first, second)
    assert expected[0] == pytest.approx(1)
    assert not expected[1:].any()
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(first, second, strict=True)).encode()
    np.testing.assert_allclose(np.loadtxt(piped(model, rows)[0].splitlines()), expected, atol=2e-6)
    found = mine(encoder, first, second, margin="distance", one_to_one=False)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert {(0, 0), (3, 4)} <= set(pairs)
    assert all(first[a].strip() and second[b].strip() for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("margin", ["absolute", "ratio"])
def test_a_closed_reader_ends_the_program_silently(model, margin, tmp_path):
    """By SIGPIPE, which OpusCleaner treats as success. Temporary files are removed."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "ems.commands.cli", "score", "--model", str(model)]
    run = subprocess.Popen([*command, "--margin", margin], **pipes, env=environment)
    run.stdout.close()
    run.stdin.write((ROW + b"\n") * 50)
    run.stdin.close()
    log = run.stderr.read().decode()
    assert run.wait() == -signal.SIGPIPE, log
    assert not re.search("Broken pipe|error", log)
    assert list(tmp_path.iterdir()) == []
