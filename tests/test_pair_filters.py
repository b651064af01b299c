"""Laws of `clean.filters` and of `ems clean`: noise of each kind goes, right pairs stay, and every
pair is counted once."""

import io
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from itertools import chain
from typing import get_args
from unittest.mock import patch

import pytest
from conftest import ROOT, SHARED, needs
from made.corpora import moses_of
from made.pair_noise import REASONS, found, noisy
from made.text import cleaned, filtered, tiny

from ems.commands.cli import main
from ems.config.experiment import Corpus
from ems.config.languages import load_languages
from ems.config.text import CleanSettings, LanguageFilter, PairFilter
from ems.corpora.demo.texts import build
from ems.corpora.moses import read_pairs
from ems.text import duplicates, lengths
from ems.text.duplicates import NEAR, Seen
from ems.text.evalkeys import write_keys
from ems.text.filters import CleanReport, in_batches
from ems.text.lengths import LengthFilter
from ems.text.normalise import tidy
from ems.text.pair_filters import pair_tests

DEFAULT = CleanSettings(filters="default")


@cache
def demo(code="de"):
    """Right pairs of the demo, English second; every fifth one has a number on both sides."""
    pairs = [(other, english) for english, other in (s.pair(code) for s in build().train[code])]
    draw = random.Random(1)
    for at in range(0, len(pairs), 5):
        number = draw.randrange(100, 10_000)
        pairs[at] = tuple(f"{text[:-1]} ({number}){text[-1]}" for text in pairs[at])
    return pairs[:5000]


FOREIGN = {"de": "ru", "zh": "ru", "ru": "zh"}


# --- what each filter removes

CASES = {
    "letters": ([("See 7", "7"), ("…", "x")], [("7a", "b"), ("क", "x")]),
    "addresses": (
        [("see www.a.org", "siehe"), ("mail a.b@c.de", "Mail"), ("x", "HTTP://A.B/c")],
        [
            ("http://a.b c", "x https://d.e"),
            ("@user1@user2.net a", "b"),
            ("a @ b", "c"),
            ("3:1", "3"),
        ],
    ),
    "numbers": (
        [("in 1985", "im Jahr 1977"), ("१९८५ में", "in 1988"), ("12 or 1,500", "12 oder 1.800")],
        [
            *[("1,234.5", "1.234,5"), ("2 of 10", "zehn"), ("1985", "85"), ("७५", "75")],
            *[("10 miles, 50", "16 km, 50"), ("550 lb", "250 kg"), ("80 °F", "27 °C")],
            *[
                ("10:30 p.m.", "22.30 Uhr"),
                ("2020", "2563"),
                ("11 million", "1100万"),
                ("007 12", "7 12"),
            ],
        ],
    ),
    "copies": (
        [("Read more", "READ MORE!"), ("“A b”", "a, b"), ("é", "E\u0301")],
        [("Hotel", "Hotels"), ("a b", "b a"), ("a 1", "a 2")],
    ),
    "script": (
        [("Доброе утро, господа", "Good morning"), ("Guten Tag", "早上好，女士们先生们，再见了")],
        [("Привет", "Hello"), ("Das Wort „правда“ ist russisch", "The word правда is Russian")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_filter_removes_what_it_says(name):
    gone, stays = CASES[name]
    kept, report = filtered([*stays, *gone], filters=[name])
    assert kept == [(tidy(first), tidy(second)) for first, second in stays]
    assert +report.removed == Counter({name: len(gone)})
    assert filtered(gone)[1].kept == len(gone)  # off by default


def test_a_name_in_latin_letters_stays_in_a_text_of_another_script():
    text = "被告的姓名分别是 Baba Kanjar、Bhutha Kanjar、Rampro Kanjar。"
    assert filtered([(text, "x")], ("zh", "en"), filters=["script"])[0]
    assert not filtered([("Автобус Scotturb едет", "x")], ("pt", "en"), filters=["script"])[0]
    assert filtered([("Привет, друзья мои", "x")], ("sr", "en"), filters=["script"])[0]  # either


def test_each_name_of_the_schema_is_a_filter_and_default_stands_for_all():
    names = get_args(PairFilter)
    own = [*pair_tests(["de", "en"], names), *LengthFilter(names).reasons, NEAR]
    assert tuple(own) == DEFAULT.pair_filters == names
    assert CleanSettings().pair_filters == CleanSettings(filters="none").pair_filters == ()
    assert CleanSettings(filters=["numbers"]).pair_filters == ("numbers",)
    assert list(filtered(demo()[:9], filters="default")[1].removed)[3:] == [*names]


# --- lengths are learned


def lengths_of(pairs, names=("length", "truncated")):
    report = CleanReport(read=len(pairs))
    rows = [(*pair, at) for at, pair in enumerate(pairs)]
    kept = list(chain.from_iterable(LengthFilter(names).apply(in_batches(rows), report)))
    assert len(kept) + report.removed.total() == len(rows)
    return [row[:2] for row in kept], report


def test_the_ratio_is_that_of_the_first_pairs(monkeypatch):
    normal = [
        (f"{'wort ' * (at % 9 + 3)}.", f"{'some word ' * (at % 9 + 3)}.") for at in range(400)
    ]
    odd = ("wort " * 5 + ".", "word " * 5 + ".")  # as long as the other, which is odd here
    kept, report = lengths_of([*normal, ("wort " * 20, "word"), odd])
    assert kept == [*normal, odd]
    assert report.removed == Counter(length=1)
    monkeypatch.setattr(lengths, "LEARNED", 300)
    assert lengths_of([*normal, *[("wort " * 20, "word")] * 4000])[0] == normal  # not of all pairs
    short = [("wort " * 20, "word")] * 199
    assert lengths_of(short)[0] == short  # too few to learn from


def test_a_cut_side_is_found_where_sentences_have_stops():
    cut = ("Sie kam erst spät am Abend nach Hause und war sehr müde.", "She only came ho")
    pairs = demo()[1:600]
    kept, report = lengths_of([*pairs, cut, cut[::-1]])
    assert kept == pairs
    assert report.removed["truncated"] + report.removed["length"] == 2
    without = [(first.rstrip(".?!"), second) for first, second in pairs]
    assert lengths_of([*without, cut[::-1]], ["truncated"])[0] == [*without, cut[::-1]]


def test_the_first_pairs_wait_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(lengths, "HELD", 10_000)
    taken = []
    rows = ((*pair, at) for at, pair in enumerate(demo()) if not taken.append(at))
    batches = ([row] for row in rows)
    next(LengthFilter(["length"]).apply(batches, CleanReport()))
    assert 50 < len(taken) < 250


# --- near duplicates

SERIES = [("Kapitel 1", "Chapter 1"), ("kapitel 22!", "CHAPTER 22"), ("Kapital", "Chapter")]


def test_near_duplicates_have_the_same_letters(tmp_path, monkeypatch):
    in_memory = filtered([*SERIES, *demo()[:50]], filters=[NEAR])
    assert in_memory[0] == [SERIES[0], SERIES[2], *demo()[:50]]
    assert +in_memory[1].removed == Counter({NEAR: 1})
    monkeypatch.setattr(duplicates, "IN_MEMORY", 10)
    monkeypatch.chdir(tmp_path)
    assert filtered([*SERIES, *demo()[:50]], filters=[NEAR]) == in_memory
    assert not list(tmp_path.iterdir())
    both = filtered([SERIES[0], *SERIES], filters=[NEAR], duplicates="drop")[1].removed
    assert +both == Counter({NEAR: 1, "duplicates": 1})


def test_a_set_without_a_capacity_grows():
    seen, texts = Seen(0), [str(at % 700) for at in range(5000)]
    new = [new for at in range(0, 5000, 9) for new in seen.add(texts[at : at + 9])]
    assert new == [at < 700 for at in range(5000)]
    assert len(seen.table) < 4 * 3 * 700


# --- made noise

WANTED = {"number": 0.85, "truncated": 0.9}  # a unit may explain a number, a short text a cut


@pytest.mark.parametrize("code", ["de", "zh", "ru"])
def test_made_noise_of_each_kind_goes_and_right_pairs_stay(code):
    french = [s.pair("fr")[1] for s in build().train["fr"][:300]]
    script = [text for text, _ in demo(FOREIGN[code])[:300]]
    foreign = {"script": script, "language": french}
    rows = noisy(demo(code), [*REASONS], 0.4, code, foreign)
    settings = CleanSettings(filters="default", language=LanguageFilter())
    kinds, reasons = found(rows, (code, "en"), settings)
    assert set(kinds) == {*REASONS, ""}
    for kind in REASONS:
        gone = kinds[kind] - reasons[kind, ""]
        assert gone >= WANTED.get(kind, 0.95) * kinds[kind] > 20, kind
    for reason in {*REASONS.values()} - {"language", "swapped"}:  # of test_noise.py
        total = sum(count for (_, each), count in reasons.items() if each == reason)
        assert reasons["", reason] <= 0.005 * total + 1, reason
    assert sum(reasons["", reason] for reason in DEFAULT.pair_filters) <= 0.001 * kinds[""]


# --- right pairs stay


def right_pairs(corpus):
    """(languages, distinct right pairs that are no copies) of real corpora."""
    if corpus == "FLORES":
        folder = SHARED / "flores200/flores200_dataset/devtest"
        texts = {
            code: (folder / f"{language.flores200}.devtest").read_text("utf-8").splitlines()
            for code, language in load_languages().items()
        }
        sides = [(code, "en") for code in texts if code != "en"]
        yield from ((pair, list(zip(*map(texts.get, pair), strict=True))) for pair in sides)
        return
    for path in sorted((SHARED / "opus" / corpus).glob("*/moses/*.zip")):
        pair = path.name.partition(".")[0]
        yield pair.split("-"), list(read_pairs(path, corpus, pair))


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["FLORES", "NTREX", "tico-19"])
def test_of_right_pairs_999_of_1000_stay(corpus):
    needs(SHARED.is_dir(), "the real corpora are not available")
    total, removed = 0, Counter()
    for languages, pairs in right_pairs(corpus):
        known = filtered(pairs, languages, filters=["copies", NEAR])[0]  # these are no right pairs
        if corpus == "tico-19" and "fr" in languages:
            continue  # 300 of its pairs are no translations
        removed += filtered(known, languages, filters="default")[1].removed
        total += len(known)
    assert total > 40_000
    assert removed.total() <= 0.001 * total, removed


def test_of_the_pairs_of_the_demo_999_of_1000_stay():
    for code in ("de", "fr", "es", "ru", "zh", "ja", "ar"):
        assert filtered(demo(code), (code, "en"), filters="default")[1].removed.total() <= 5


def test_noisy_text_has_the_asked_share_of_damage_the_same_in_every_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    script, folder = import_module("noisy_text"), tmp_path / "clean/Demo+train/v1"
    folder.mkdir(parents=True)
    rows = demo()[:2000]
    lines = [f"{one}\t{other}\t{at}\n" for at, (one, other) in enumerate(rows, start=1)]
    (folder / "de-en.tsv").write_text("".join(lines), encoding="utf-8")
    contents = []
    for out in ("a", "b"):
        flags = ["--text", tmp_path / "clean", "--corpora", "Demo+train", "--out", tmp_path / out]
        monkeypatch.setattr(sys, "argv", ["noisy_text", *map(str, flags)])
        script.main()
        path = tmp_path / out / "noisy-Demo/v1/moses/de-en.txt.zip"
        contents.append([tuple(pair) for pair in read_pairs(path, "noisy-Demo", "de-en")])
    damaged = [pair for pair, right in zip(contents[0], rows, strict=True) if pair != right]
    assert contents[0] == contents[1]
    assert 0.15 < len(damaged) / len(rows) < 0.25
    assert 0.2 < sum(one == other for one, other in damaged) / len(damaged) * len(REASONS) < 2


# --- ems clean


def clean(content, *flags, status=0):
    """(bytes on standard output, log) of the command for a content of standard input."""
    log, (source, out) = io.StringIO(), (io.TextIOWrapper(io.BytesIO(x)) for x in (content, b""))
    with patch("sys.stdin", source), redirect_stdout(out), redirect_stderr(log):
        assert main(["clean", "--languages", "de,en", *flags]) == status, log.getvalue()
    return out.buffer.getvalue(), log.getvalue()


def test_the_command_is_the_stage(tmp_path):
    rows = noisy(
        demo(), [*set(REASONS) - {"language", "script"}], 0.3, 2, {"script": [], "language": []}
    )
    pairs = [pair for pair, _ in rows]
    write_keys({}, tmp_path / "keys.tsv")
    corpus = Corpus("C", "v1", "somewhere", True, ("de-en",), None)
    experiment = tiny(corpus, clean={"filters": "default"}, decontaminate={"against": []})
    lines, entry = cleaned(experiment, [moses_of(tmp_path / "x.zip", pairs)], tmp_path / "keys.tsv")
    report = tmp_path / "report.json"
    out, _ = clean("".join(f"{a}\t{b}\n" for a, b in pairs).encode(), "--report", str(report))
    assert out.decode().split("\n")[:-1] == ["\t".join(line[:2]) for line in lines]
    counts = json.loads(report.read_text())
    assert +Counter(counts["removed"]) == +Counter(entry["removed"])
    assert counts["read"] == len(pairs) == counts["kept"] + sum(counts["removed"].values())
    assert counts["examples"]["numbers"]


def test_lines_that_are_no_pair_are_counted_and_further_columns_stay(tmp_path):
    good = ["Hallo Welt\tHello world\tthird \tfourth", "Guten Tag.\tGood day."]
    content = f"{good[0]}\r\none column\n{good[1]}\n\n".encode()
    content += b"a\xff\tb\na\0\tb\nx\t" + b"y" * 1_000_001 + b"\n  Zwei  Worte\tTwo\xc2\xa0words\n"
    content += b"a\tb\n" * 8 + b"a\tb"
    report = tmp_path / "report.json"
    out, _ = clean(content, "--report", str(report), "--filters", "none")
    assert out.decode() == f"{good[0]}\n{good[1]}\nZwei Worte\tTwo words\n" + "a\tb\n" * 9
    counts = json.loads(report.read_text())
    wrong = {"malformed": 2, "undecodable": 1, "nul": 1, "too_long": 1}
    assert +Counter(counts["removed"]) == Counter(wrong)
    assert (counts["read"], counts["kept"]) == (17, 12)
    log = clean(b"a\nb\nc\td\n", status=1)[1]
    assert "2 of 3 rows are no pairs (2 not two texts), like line 1" in log
    assert clean(b"")[0] == b""


def test_language_exchanges_swapped_sides_and_flags_are_checked():
    german, english = "Die Kinder spielen im Garten.", "The children play in the garden."
    line = f"{english}\t{german}\n".encode()
    assert clean(line, "--language")[0] == f"{german}\t{english}\n".encode()
    assert clean(line, "--language", "--filters", "none")[0] == f"{german}\t{english}\n".encode()
    assert clean(line, "--filters", "numbers", "copies")[0] == line
    log = clean(line, "--filters", "number", status=1)[1]
    assert "found 'number'; allowed values: letters, addresses, numbers" in log
    assert (
        "expected two codes, like en,da, found de" in clean(line, "--languages", "de", status=1)[1]
    )


@pytest.mark.slow
def test_a_closed_reader_ends_the_command_silently():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "ems.commands.cli", "clean", "--languages", "de,en"]
    run = subprocess.Popen([*command, "--filters", "none"], **pipes, env={**os.environ})
    run.stdout.close()
    try:
        run.stdin.write(b"eins\tone\n" * 200_000)
        run.stdin.close()
    except BrokenPipeError:
        pass
    log = run.stderr.read().decode()
    assert run.wait() == -signal.SIGPIPE, log
    assert "error" not in log
