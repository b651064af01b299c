"""Laws of cleaning: no evaluation sentence survives, every loss is counted, a cap draws fairly."""

import json
import random
import unicodedata
from collections import Counter
from functools import partial

import pytest
from conftest import SHARED, needs
from made.corpora import moses_of
from made.text import cleaned, law, passed, tiny

from ems.base.errors import EmsError
from ems.benchmarks.tatoeba.data import read_language
from ems.config.experiment import Corpus
from ems.config.languages import load_languages
from ems.corpora.moses import read_pairs
from ems.text.clean import merge_reports, sampled
from ems.text.evalkeys import eval_files, read_eval_keys, write_eval_keys
from ems.text.filters import CleanReport
from ems.text.normalise import tidy

# --- decontamination


def written(tmp_path, key, sets):
    """The file of evaluation keys of `sets`: `<set>/<language>` -> (sentences, English ones)."""
    files = {label: partial(lambda sides: sides, sides) for label, sides in sets.items()}
    write_eval_keys(key, files, tmp_path / "evalkeys.tsv")
    return tmp_path / "evalkeys.tsv"


def run(pairs, keys, key, sides=("de", "en")):
    report = CleanReport(read=len(pairs))
    numbered = ((first, second, at) for at, (first, second) in enumerate(pairs, start=1))
    return [pair[:2] for pair in passed(numbered, report, sides, keys, key)], report


def own_key(name, text):
    """The two keys once more."""
    plain = " ".join(unicodedata.normalize("NFC", text).lower().split())
    return plain if name == "plain" else law(text)


DISGUISES = {
    "plain": [str.upper, lambda t: f"  {t}\u3000", lambda t: unicodedata.normalize("NFD", t)],
    "folded": [
        str.upper,
        lambda t: t.replace(" ", ""),
        lambda t: f"«{t}»!",
        lambda t: unicodedata.normalize("NFD", t),
        lambda t: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in t),
    ],
}


@pytest.mark.parametrize("key", ["plain", "folded"])
@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_pairs_without_an_evaluation_sentence_on_either_side_stay(tmp_path, key, seed):
    draw = random.Random(seed)

    def sentence():
        return " ".join(
            "".join(draw.choice("abéक्日।") for _ in range(draw.randint(1, 2)))
            for _ in range(draw.randint(1, 2))
        )

    sets = {
        f"tatoeba/{code}": ([sentence() for _ in range(40)], [sentence() for _ in range(40)])
        for code in ("de", "fr")
    }
    leaks = [text for sides in sets.values() for side in sides for text in side]
    pairs = []
    for _ in range(1500):
        pair = [sentence() + sentence(), sentence() + sentence()]
        if draw.random() < 0.3:
            disguise = draw.choice(DISGUISES[key])
            pair[draw.randint(0, 1)] = disguise(draw.choice(leaks))
        if draw.random() < 0.05:
            pair[draw.randint(0, 1)] = draw.choice(["", "  ", "\u3000", "\x00\u2028"])
        pairs.append(tuple(pair))

    known = {own_key(key, text) for text in leaks} - {""}
    expected, lost = [], Counter()
    for first, second in pairs:
        if not first.strip("\x00\u2028\u3000 ") or not second.strip("\x00\u2028\u3000 "):
            lost["one_empty"] += 1
        elif own_key(key, first) in known or own_key(key, second) in known:
            lost["evaluation"] += 1
        else:
            expected.append((first, second))
    assert lost["evaluation"] > 300
    assert len(expected) > 500

    keys = read_eval_keys([written(tmp_path, key, sets)])
    kept, report = run(pairs, keys, key)
    assert [[own_key(key, t) for t in pair] for pair in kept] == [
        [own_key(key, t) for t in pair] for pair in expected
    ]
    assert report.removed == lost
    assert report.read == report.kept + sum(report.removed.values())


@pytest.mark.parametrize("key", ["plain", "folded"])
def test_an_evaluation_sentence_goes_whatever_odd_character_it_holds(tmp_path, key):
    codes = [code for code in range(0x10000) if code != 10 and not 0xD800 <= code < 0xE000]
    sentences = [f"{code}{chr(code)}x" for code in codes]  # each with a number of its own
    path = written(tmp_path, key, {"tatoeba/de": (sentences, ["x"])})
    kept, report = run([(text, "other") for text in sentences], read_eval_keys([path]), key)
    assert kept == []
    assert report.removed["evaluation"] == len(sentences)


def test_a_sentence_without_a_key_matches_nothing(tmp_path):
    path = written(tmp_path, "folded", {"tatoeba/de": (["..."], ["?!"])})
    kept, _ = run([("...", "a"), ("b", "?!")], read_eval_keys([path]), "folded")
    assert kept == [("...", "a"), ("b", "?!")]


def test_a_pair_that_two_sets_hold_counts_for_both_and_is_removed_once(tmp_path):
    sets = {"one/de": (["leak"], ["x"]), "two/de": (["y"], ["Leak too"]), "two/fr": (["leak"], [])}
    keys = read_eval_keys([written(tmp_path, "plain", sets)])
    pairs = [("leak", "leak too"), ("leak", "fine"), ("fine", "x")]
    kept, report = run(pairs, keys, "plain")
    assert kept == []
    assert report.removed == Counter(evaluation=3)
    assert report.by_benchmark == {
        "one": Counter(pairs=3, de=2, en=1),
        "two": Counter(pairs=2, de=2, en=1),
    }


@pytest.mark.parametrize("key", ["plain", "folded"])
def test_the_file_of_keys_gives_back_every_key_with_its_sets(tmp_path, key):
    odd = ["a\u2028b", "c\x85d", "e\x1cf", "g\th", "İI", "ß", "ｱ", "x\ry"]
    sets = {"one/de": (odd, ["both"]), "two/fr": (["both"], odd[:2])}
    expected = {}
    for label, sides in sets.items():
        for text in (text for side in sides for text in side):
            expected.setdefault(own_key(key, tidy(text)), set()).add(label.split("/")[0])
    keys = read_eval_keys([written(tmp_path, key, sets)])
    assert keys == {text: tuple(sorted(names)) for text, names in expected.items()}


# --- caps


def test_a_cap_draws_exactly_so_many_in_their_order():
    pairs = [(str(at), str(at)) for at in range(100)]
    for keep in (1, 2, 50, 99, 100):
        drawn = list(sampled(pairs, 100, keep, "s"))
        assert len(drawn) == keep
        assert drawn == sorted(set(drawn), key=pairs.index)
        assert drawn == list(sampled(iter(pairs), 100, keep, "s"))


def test_another_seed_draws_other_pairs_and_every_pair_equally_often():
    pairs = range(10)
    draws = [tuple(sampled(pairs, 10, 3, str(seed))) for seed in range(3000)]
    counts = Counter(pair for drawn in draws for pair in drawn)
    assert len(set(draws)) == 120  # all of 10 over 3
    assert all(780 < counts[pair] < 1020 for pair in pairs)  # 900 expected, 25 is one sigma


# --- a whole corpus


def experiment(max_pairs=None, **changes):
    return tiny(Corpus("C", "v1", "somewhere", True, ("de-en",), max_pairs), **changes)


def clean(tmp_path, pairs, sides, **settings):
    """(columns, report) of pairs, some of which are in an evaluation set of these sides."""
    keys = written(tmp_path, "folded", {"tatoeba/de": sides})
    return cleaned(experiment(**settings), [moses_of(tmp_path / "x.zip", pairs)], keys)


def test_what_went_in_is_what_came_out_and_the_counted_losses(tmp_path):
    lines = ["eins|one", "|empty", "LECK|two", "drei\tx|a leak", "vier|Leak"]
    pairs = [line.split("|") for line in lines]
    rows, entry = clean(tmp_path, pairs, (["Leck!"], ["leak"]))
    assert rows == [["eins", "one", "1"], ["drei x", "a leak", "4"]]
    assert entry == {
        "corpus": "C",
        "version": "v1",
        "role": "train",
        "pair": "de-en",
        "read": 5,
        "kept": 2,
        "removed": {"cap": 0, "both_empty": 0, "one_empty": 1, "evaluation": 2},
        "changed": {},
        "by_benchmark": {"tatoeba": {"pairs": 2, "de": 1, "en": 1}},
        "threshold": None,
        "files": {"de-en": 5},
        "archives": {"de-en": "C/v1/moses/x.zip"},
    }
    assert json.loads((tmp_path / "out.json").read_text()) == entry
    merge_reports(experiment(), [tmp_path / "out.json"] * 2, tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    settings = {"key": "folded", "scope": "any", "against": ["tatoeba"]}
    assert report == {**settings, "corpora": [entry, entry]}


def test_a_capped_corpus_is_the_same_for_the_same_seed_only(tmp_path):
    pairs = [(f"satz {at}", f"sentence {at}") for at in range(50)] + [("", "x")] * 10
    drawn = []
    for seed in (1, 1, 2):
        rows, entry = clean(tmp_path, pairs, (["7"], ["8"]), max_pairs=30, seed=seed)
        assert entry["read"] == 60 == entry["kept"] + sum(entry["removed"].values())
        assert entry["removed"]["cap"] == 30
        drawn.append(rows)
    assert drawn[0] == drawn[1] != drawn[2]
    for cap in (50, 51):  # no lower than the number of pairs
        _, entry = clean(tmp_path, pairs[:50], (["x"], ["y"]), max_pairs=cap)
        assert (entry["kept"], entry["removed"]["cap"]) == (50, 0)


def test_a_corpus_of_which_nothing_is_left_is_an_error_and_no_file(tmp_path):
    with pytest.raises(EmsError, match=r"x\.zip: cleaning removed all 2 pairs: .*'evaluation': 2"):
        clean(tmp_path, [("a", "x"), ("y", "B.")], (["a"], ["b"]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evalkeys.tsv", "x.zip"]


def test_the_parts_of_a_benchmark_are_read_by_its_own_codes(tmp_path):
    for code, text in (("deu", "hallo"), ("jpn", "やあ"), ("cmn", "你好")):
        (tmp_path / f"tatoeba.{code}-eng.{code}").write_text(f"{text}\n", encoding="utf-8")
        (tmp_path / f"tatoeba.{code}-eng.eng").write_text(f"hi {code}\n")
    files = eval_files(experiment(), {"tatoeba": tmp_path})
    assert {label: list(read()) for label, read in files.items()} == {
        "tatoeba/deu": [["hallo"], ["hi deu"]],
        "tatoeba/cmn": [["你好"], ["hi cmn"]],
        "tatoeba/jpn": [["やあ"], ["hi jpn"]],
    }


# --- real corpora, where they lie beside the project: known overlaps with the real Tatoeba v1

OVERLAPS = {  # exact matches after NFC, lower case and white space, the pair's own language
    "de": {"Tatoeba": 735, "Mozilla-I10n": 1},
    "ja": {"Tatoeba": 1023},
    "lv": {"Tatoeba": 911, "Mozilla-I10n": 1},
    "ta": {"Tatoeba": 301},
    "jv": {"Tatoeba": 242},
}


def removed(pair, keys, key):
    """Pairs removed from each corpus that has `pair`."""
    counts = {}
    for path in sorted((SHARED / "opus").glob(f"*/*/moses/{pair}.txt.zip")):
        corpus = path.parts[-4]
        report = CleanReport()
        pairs = ((first, second, 0) for first, second in read_pairs(path, corpus, pair))
        for _ in passed(pairs, report, ("a", "b"), keys, key):
            pass
        if report.removed["evaluation"]:
            counts[corpus] = report.removed["evaluation"]
    return counts


@pytest.mark.parametrize("code", list(OVERLAPS))
def test_real_corpora_lose_the_documented_number_of_pairs(tmp_path, code):
    needs(SHARED.is_dir(), "the real corpora do not lie beside the project")
    read = partial(read_language, SHARED / "tatoeba_v1", load_languages()[code].tatoeba_v1)
    write_eval_keys("plain", {f"tatoeba/{code}": read}, tmp_path / "keys.tsv")
    pair = "-".join(sorted(("en", code)))
    keys = read_eval_keys([tmp_path / "keys.tsv"])
    assert removed(pair, keys, "plain") == OVERLAPS[code]


def test_the_default_key_against_all_languages_finds_more_in_real_corpora(tmp_path):
    needs(SHARED.is_dir(), "the real corpora do not lie beside the project")
    folder = SHARED / "tatoeba_v1"
    codes = {path.name.split(".")[2] for path in folder.glob("tatoeba.*-eng.*")} - {"eng"}
    assert len(codes) == 112
    files = {f"tatoeba/{code}": partial(read_language, folder, code) for code in codes}
    write_eval_keys("folded", files, tmp_path / "keys.tsv")
    assert sum(removed("en-eu", read_eval_keys([tmp_path / "keys.tsv"]), "folded").values()) == 361
