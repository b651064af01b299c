"""Laws of Juman++, against a program that misbehaves as the real one does: nothing is lost, and one
sentence through pyknp has the words that it has among many."""

import importlib.util
import os
import signal
import sys
import threading
from functools import partial

import pytest
from conftest import needs
from made.segmenters import (
    NASTY,
    _look_for_the_tools_anew,  # noqa: F401
    assert_nothing_is_lost,
    characters,
    put_jumanpp,
)

from ems.base.errors import EmsError
from ems.text.segmenters import jumanpp as jumanpp_module
from ems.text.segmenters.base import segmenter

LINES = [
    *NASTY,
    "ハンカク ﾊﾝｶｸ ｶﾞ",  # the stand-in has two readings of each
    "(^ ^) (^^) x",
    '日本 @ @@ \\ " "x" \'',
    "　全角　",
    "日" * 1_333,  # 3,999 bytes
    "日" * 1_334,  # 4,002
]


@pytest.fixture(autouse=True)
def _no_juman_of_another_test():
    jumanpp_module._juman.cache_clear()
    yield
    jumanpp_module._juman.cache_clear()


@pytest.fixture
def jumanpp(tmp_path, monkeypatch):
    """Puts a `jumanpp` on PATH."""
    return partial(put_jumanpp, tmp_path, monkeypatch)


@pytest.fixture
def many(monkeypatch):
    """Every call is one for many lines."""
    monkeypatch.setattr(jumanpp_module, "FEW", 0)


@pytest.fixture
def pyknp(monkeypatch):
    """Few lines go through pyknp, and what did not is recorded."""
    needs(importlib.util.find_spec("pyknp"), "pyknp is not installed")
    monkeypatch.setattr(jumanpp_module, "PATIENCE", 1)
    others, real = [], jumanpp_module.segment_many

    def segment_many(prepared):
        others.extend(prepared)
        return real(prepared)

    monkeypatch.setattr(jumanpp_module, "segment_many", segment_many)
    return others


def starts(program, flags):
    """(process, parent) of each start of the stand-in with these flags."""
    rows = [row.split() for row in program.with_name("jumanpp.log").read_text().splitlines()]
    return [(int(pid), int(parent)) for pid, parent, *rest in rows if rest == flags]


# --- many lines


def test_what_jumanpp_drops_is_kept_from_it(jumanpp, many):
    jumanpp()
    segment = segmenter("jumanpp", "ja")
    assert_nothing_is_lost(segment, "jumanpp")
    assert segment(["# 日本", "", "日 本"]) == ["# 日 本", "", "日 本"]
    lines = ["ﾊﾝｶｸ", "ｶﾞｷﾞ ﾊﾟ", "ＡＢ１ ﾊﾝｶｸハンカク", "ｱｰ。"]  # a token each, to Juman++
    assert segment(lines) == ["ハンカク", "ガギ パ", "Ａ Ｂ １ ハンカクハンカク", "アー 。"]
    lines = ["a" * shift + "日本" * 2_000 for shift in range(7)]  # cut wherever the limit falls
    assert [characters(line) for line in segment(lines)] == lines


FAULTS = [
    *(({"drop": f"number == {at}"}, "日中本", "3 lines went in and 2 came out") for at in (0, 2)),
    ({"drop": "line == b''"}, ["日", "", "本"], "3 lines went in and 2 came out, .*be aligned"),
    ({"end": "sys.exit('no model here')"}, "日", "jumanpp: exit status 1: no model here"),
]


@pytest.mark.parametrize(("fault", "lines", "message"), FAULTS)
def test_a_tool_that_drops_a_line_or_fails_all_the_same_is_an_error(
    jumanpp, many, fault, lines, message
):
    jumanpp(**fault)
    with pytest.raises(EmsError, match=message):
        segmenter("jumanpp", "ja")(list(lines))


# --- a sentence or two


def test_a_sentence_through_pyknp_has_the_words_that_it_has_among_many(jumanpp, pyknp):
    jumanpp()
    among_many = segmenter("jumanpp", "ja")(LINES)
    del pyknp[:]
    assert [segmenter("jumanpp", "ja")([line])[0] for line in LINES] == among_many
    # what pyknp cannot say, and nothing else, went the other way
    lost = {"#", "##", "## #"} | {line for line in LINES if len(line.encode()) > 4000}
    lost |= {line for line in LINES if "(^^)" in line or "#" in line}
    assert 0 < len(pyknp) < len(LINES) / 2
    assert set(map(characters, pyknp)) <= {characters(line) for line in lost}


def test_few_lines_start_juman_once_and_many_start_another(jumanpp, pyknp):
    program = jumanpp()
    for line in ("日本", "x", "", "ハンカク"):
        segmenter("jumanpp", "ja")([line, "日"])
    assert len(starts(program, [])) == 1
    assert starts(program, ["--segment"]) == []
    segmenter("jumanpp", "ja")(["日"] * (jumanpp_module.FEW + 1))
    assert len(starts(program, ["--segment"])) == 1


@pytest.mark.parametrize("fault", ["slow", "dead", "wrong"])
def test_what_pyknp_cannot_say_goes_the_other_way_and_leaves_nothing_behind(jumanpp, pyknp, fault):
    jumanpp(**{fault: "止"})
    segment = segmenter("jumanpp", "ja")
    assert segment(["日本", "止む", "日中"]) == ["日 本", "止 む", "日 中"]
    assert segment(["中日"]) == ["中 日"]
    assert pyknp == ["止む"]


def test_a_juman_that_is_killed_is_started_anew(jumanpp, pyknp):
    program = jumanpp()
    segment = segmenter("jumanpp", "ja")
    assert segment(["日本"]) == ["日 本"]
    os.kill(starts(program, [])[0][0], signal.SIGKILL)
    assert [segment([line])[0] for line in ("中日", "日中")] == ["中 日", "日 中"]
    assert len(starts(program, [])) == 2


def test_a_process_that_forks_and_its_child_have_a_juman_each(jumanpp, pyknp):
    program = jumanpp()
    segment = segmenter("jumanpp", "ja")
    assert segment(["日本"]) == ["日 本"]
    child = os.fork()
    own = [f"{'子' if child == 0 else '親'}{at}" for at in range(200)]
    right = [segment([line])[0] for line in own] == [" ".join(line) for line in own]
    if child == 0:
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert right
    assert os.waitstatus_to_exitcode(status) == 0
    assert pyknp == []
    assert {parent for _, parent in starts(program, [])} == {os.getpid(), child}


def test_an_alarm_of_the_program_that_uses_us_still_goes_off(jumanpp, pyknp):
    jumanpp()
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        assert segmenter("jumanpp", "ja")(["日本"]) == ["日 本"]
        assert pyknp == []
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        assert segmenter("jumanpp", "ja")(["日中"]) == ["日 中"]
        assert pyknp == ["日中"]
        signal.sigtimedwait([], 1)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_thread_asks_as_for_many_since_it_cannot_keep_time(jumanpp, pyknp):
    jumanpp()
    limits = []
    work = threading.Thread(target=lambda: limits.extend(segmenter("jumanpp", "ja")(["日本"])))
    work.start()
    work.join()
    assert limits == ["日 本"]
    assert pyknp == ["日本"]


def test_without_pyknp_the_words_are_the_same(jumanpp, monkeypatch):
    program = jumanpp()
    monkeypatch.setitem(sys.modules, "pyknp", None)
    real = importlib.util.find_spec
    absent = lambda name: None if name == "pyknp" else real(name)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", absent)
    assert segmenter("jumanpp", "ja")(["日本", "# x"]) == ["日 本", "# x"]
    assert len(starts(program, ["--segment"])) == 1
