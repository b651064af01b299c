"""Laws of cleaning: no evaluation sentence survives, every loss is counted, every file is read."""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain, compress, cycle
from unicodedata import category

import pytest
import yaml
from conftest import ROOT, SHARED, needs
from made import corpora
from made.corpora import moses_of, translations, write_opus, write_tatoeba, write_zip
from made.experiments import MINIMAL, Settings, one_line
from made.text import cleaned, filtered, law, passed, tiny

from ems.benchmarks.tatoeba.data import read_language
from ems.config.corpus_entries import Split
from ems.config.experiment import UNSEEN, Corpus
from ems.config.languages import load_languages, load_tatoeba_codes
from ems.corpora.moses import read_pairs
from ems.text.clean import merge_reports, sampled
from ems.text.evalkeys import EvalKeys, eval_files, write_eval_keys, write_keys
from ems.text.filters import CleanReport
from ems.text.normalise import tidy

# --- evaluation sentences


def written(tmp_path, key, sets):
    """The file of evaluation keys of `sets`: `<set>/<language>` -> (sentences, English ones)."""
    path = tmp_path / "evalkeys.tsv"
    write_eval_keys(key, {label: partial(iter, sides) for label, sides in sets.items()}, path)
    return path


def own_key(name, text):
    plain = " ".join(unicodedata.normalize("NFC", text).lower().split())
    return plain if name == "plain" else law(text)


@pytest.mark.parametrize("key", ["plain", "folded"])
def test_the_file_of_keys_holds_every_key_with_its_sets(tmp_path, key):
    codes = [c for c in range(0x10000) if c != 10 and category(chr(c)) not in ("Cs", "Cn")]
    odd = [f"{code}{chr(code)}x" for code in codes]  # each with its own number
    sets = {"one/de": (odd, ["both", "\u200b!"]), "two/fr": (["both"], odd[:2])}
    expected = {own_key(key, tidy(text)): ("one",) for text in (*odd, "\u200b!")}
    expected |= {own_key(key, tidy(text)): ("one", "two") for text in ("both", *odd[:2])}
    expected.pop("", None)  # a sentence without a folded key matches nothing
    keys = EvalKeys([written(tmp_path, key, sets)], key).of(None)
    assert keys == expected
    pairs = [("—", "?!"), *((text, "other") for text in odd)]
    assert filtered(pairs, known=keys, key=key)[0] == pairs[:1]


COATS = yaml.safe_load((ROOT / "tests/decontamination.yaml").read_text("utf-8"))


@pytest.mark.parametrize(("outcome", "kind"), [(one, kind) for one in COATS for kind in COATS[one]])
def test_an_evaluation_sentence_goes_in_any_coat_and_another_sentence_stays(
    tmp_path, outcome, kind
):
    evaluation, *training = COATS[outcome][kind]
    paths = [written(tmp_path, "primary", {"tatoeba/de": ([evaluation], [])})]
    keys = EvalKeys(paths, "primary").of(None)
    pairs = [(text, "other") for text in training]
    kept = pairs if outcome == "stays" else []
    assert filtered(pairs, known=keys, key="primary")[0] == kept
    assert filtered([(evaluation, "other")], known=keys, key="primary")[0] == []


# --- several evaluation sets, from their files to the report

SETS = ["tatoeba", "flores200", "sib200", "ntrex"]
FLORES = {"en": "eng_Latn", "de": "deu_Latn"}
FOUR = MINIMAL | {"languages": ["en", "de"], "decontaminate": {"against": SETS}}
FOUR["evalsets"] = {name: {"version": "v1"} for name in SETS}


def sentences(name, count=12):
    """Translations whose words all end in `name`."""
    for item in translations(count, ["en", "de", "fr"], seed=name, least=3):
        yield {c: " ".join(f"{word}{name}" for word in text.split()) for c, text in item.items()}


def write_sets(mirror):
    """Four sets in English and German; FLORES and SIB share half of their sentences."""
    items = {name: list(sentences(name)) for name in SETS}
    items["sib200"][:6] = items["flores200"][:6]
    write_tatoeba(mirror, "deu", [(item["de"], item["en"]) for item in items["tatoeba"]])
    write_opus(mirror, "NTREX", "v1", [{c: item[c] for c in FLORES} for item in items["ntrex"]])
    for code, name in FLORES.items():
        corpora.write_flores(mirror, name, [item[code] for item in items["flores200"]])
        texts = [("travel", item[code]) for item in items["sib200"]]
        corpora.write_sib(mirror, name, {"train": texts[:4], "dev": texts[4:8], "test": texts[8:]})
    return items


def write_all_keys(tmp_path, **changes):
    """(the experiment, its evaluation keys as the stage evalkeys writes them)."""
    experiment = Settings(tmp_path / "settings", FOUR | changes).load()
    folders = {name: tmp_path / name for name in SETS} | {"ntrex": tmp_path / "opus/NTREX/v1"}
    write_eval_keys("primary", eval_files(experiment, folders), tmp_path / "evalkeys.tsv")
    return experiment, tmp_path / "evalkeys.tsv"


def decontaminated(tmp_path, pairs, **changes):
    """((German, English) of the pairs that stay, the report)."""
    experiment, keys = write_all_keys(tmp_path, **changes)
    rows, entry = cleaned(experiment, [moses_of(tmp_path / "x.zip", pairs, corpus="Toy")], keys)
    return [tuple(row[:2]) for row in rows], entry


def test_no_sentence_of_four_sets_survives_and_each_set_counts_its_own(tmp_path):
    items = write_sets(tmp_path)
    fine = [(item["de"], item["en"]) for item in sentences("fine", 60)]
    pairs = fine[:30]
    for item, (german, english) in zip(chain(*items.values()), cycle(fine[30:]), strict=False):
        pairs += [(f"«{item['de'].upper()}»", english), (german, f"  {item['en']}!")]
        pairs.append((item["de"], item["en"]))
    pairs.append((items["tatoeba"][0]["de"], items["ntrex"][0]["en"]))  # of two sets
    by_benchmark, leaked = {}, set()
    for name in SETS:
        known = {law(item[code]) for item in items[name] for code in FLORES}
        hits = [(law(german) in known, law(english) in known) for german, english in pairs]
        german, english = map(sum, zip(*hits, strict=True))
        by_benchmark[name] = {"pairs": sum(map(any, hits)), "de": german, "en": english}
        leaked.update(compress(pairs, map(any, hits)))
    expected = [pair for pair in pairs if pair not in leaked]
    removed = len(pairs) - len(expected)
    assert len(expected) >= 30
    assert sum(counts["pairs"] for counts in by_benchmark.values()) > removed > 60
    kept, entry = decontaminated(tmp_path, pairs)
    assert kept == expected
    assert entry["read"] == len(pairs)
    assert +Counter(entry["removed"]) == Counter(evaluation=removed)
    assert entry["by_benchmark"] == by_benchmark
    pairs = [(items[name][9]["de"], f"new {name}") for name in SETS]
    kept, entry = decontaminated(tmp_path, pairs, decontaminate={"against": ["sib200", "ntrex"]})
    assert kept == pairs[:2]
    assert set(entry["by_benchmark"]) == {"sib200", "ntrex"}


EVERY = {"evalsets": {"tatoeba": {"version": "v1", "languages": "all"}}}


def write_all_of_tatoeba(mirror):
    """A sentence of each language of the benchmark, and its English."""
    items = {code: (f"wort {code}", f"word of {code}") for code in load_tatoeba_codes()}
    for code, item in items.items():
        write_tatoeba(mirror, code, [item])
    return items


@pytest.mark.parametrize("scope", ["any", "pair"])
def test_scope_pair_ignores_sentences_of_other_languages(tmp_path, scope):
    items = write_all_of_tatoeba(tmp_path)
    german, unseen = items["deu"], [items[code] for code in ("fra", "ang", "war")]
    pairs = [("neu", "new"), (german[0], "a"), ("b", german[1])]
    pairs += [(text, "c") for text, _ in unseen] + [("d", english) for _, english in unseen]
    settings = {"against": ["tatoeba"], "scope": scope}
    kept, entry = decontaminated(tmp_path, pairs, **EVERY, decontaminate=settings)
    assert kept == (pairs[:1] if scope == "any" else [pairs[0], *pairs[3:]])
    assert entry["removed"]["evaluation"] == len(pairs) - len(kept)


def test_the_file_of_keys_does_not_depend_on_the_languages_trained_on(tmp_path):
    """Otherwise another language would clean every pair of every corpus again."""
    write_all_of_tatoeba(tmp_path)
    settings = {**EVERY, "decontaminate": {"against": ["tatoeba"]}}
    experiment, path = write_all_keys(tmp_path, **settings)
    few = path.read_bytes()
    assert experiment.spoken("tatoeba")["fra"] == UNSEEN
    experiment, path = write_all_keys(tmp_path, languages=["en", "de", "fr"], **settings)
    assert experiment.spoken("tatoeba")["fra"] == "fr"
    assert path.read_bytes() == few
    assert few.count(b"\n") == 2 * 112 + 1  # the last line is the checksum


# --- caps and reports


def test_a_sample_has_the_asked_size_order_and_seed_and_is_uniform():
    pairs = [(str(at), str(at)) for at in range(100)]
    for keep in (1, 2, 50, 99, 100):
        drawn = list(sampled(pairs, 100, keep, "s"))
        assert len(drawn) == keep
        assert drawn == sorted(set(drawn), key=pairs.index)
        assert drawn == list(sampled(iter(pairs), 100, keep, "s"))
    draws = [tuple(sampled(range(10), 10, 3, str(seed))) for seed in range(3000)]
    counts = Counter(pair for drawn in draws for pair in drawn)
    assert len(set(draws)) == 120  # all combinations
    assert all(780 < counts[pair] < 1020 for pair in range(10))  # 900 expected, 25 is one sigma


def clean(tmp_path, pairs, sides, max_pairs=None, **settings):
    """(columns, report) of pairs, some of which are in an evaluation set of these sides."""
    keys = written(tmp_path, "primary", {"tatoeba/de": sides})
    corpus = Corpus("C", "v1", "somewhere", True, ("de-en",), max_pairs)
    return cleaned(tiny(corpus, **settings), [moses_of(tmp_path / "x.zip", pairs)], keys)


def test_the_report_counts_every_loss(tmp_path):
    lines = ["eins|one", "|empty", "LECK|two", "drei\tx|a leak", "vier|Leak"]
    pairs = [line.split("|") for line in lines]
    rows, entry = clean(tmp_path, pairs, (["Leck!"], ["leak"]))
    assert rows == [["eins", "one", "1"], ["drei x", "a leak", "4"]]
    assert entry == {
        **{"corpus": "C", "version": "v1", "role": "train", "pair": "de-en", "read": 5, "kept": 2},
        "removed": {"cap": 0, "both_empty": 0, "one_empty": 1, "evaluation": 2},
        "changed": {},
        "by_benchmark": {"tatoeba": {"pairs": 2, "de": 1, "en": 1}},
        "threshold": None,
        "files": {"de-en": 5},
        "archives": {"de-en": "C/v1/moses/x.zip"},
    }
    merge_reports(tiny(), [tmp_path / "out.json"] * 2, tmp_path / "report.json")
    settings = {"key": "primary", "scope": "any", "against": ["tatoeba"]}
    report = json.loads((tmp_path / "report.json").read_text())
    assert report == {**settings, "corpora": [entry, entry]}


def test_a_capped_corpus_depends_on_the_seed(tmp_path):
    pairs = [(f"satz {at}", f"sentence {at}") for at in range(50)] + [("", "x")] * 10
    one, again, other = (
        clean(tmp_path, pairs, (["7"], ["8"]), max_pairs=30, seed=seed) for seed in (1, 1, 2)
    )
    assert one[0] == again[0] != other[0]
    assert other[1]["read"] == 60 == other[1]["kept"] + sum(other[1]["removed"].values())


# --- the files of a language pair

PAIR = "en-zh"
TWO = {"en-zh_cn": 5, "en-zh_tw": 2}
FIRST = Split(first={"validation": 3}, rest="train")


def texts(file, count):
    """`count` pairs of a file, {code: text} each."""
    return [{code: f"{file} {code} {at}" for code in file.split("-")} for at in range(count)]


def clean_files(folder, files, archives=None, split=None, **settings):
    """(columns, report) of a corpus with these files {name: number of pairs}."""
    corpus = Corpus("C", "v1", "x", True, (PAIR,), None, variants={PAIR: (*files,)})
    splits = {"C": split} if split else {}
    made = tiny(replace(corpus, **settings), decontaminate={"against": []}, splits=splits)
    write_keys({}, folder / "keys.tsv")
    zips = [write_zip(folder, "C", "v1", name, texts(name, n)) for name, n in files.items()]
    return cleaned(made, zips if archives is None else archives, folder / "keys.tsv", PAIR)


def test_line_numbers_run_through_the_files_and_swapped_codes_are_turned(tmp_path):
    lines, entry = clean_files(tmp_path, {"en-zh_cn": 3, "en-zh_tw": 2})
    places = [("cn", 0), ("cn", 1), ("cn", 2), ("tw", 0), ("tw", 1)]
    assert lines == [
        [f"en-zh_{to} en {at}", f"en-zh_{to} zh_{to} {at}", str(line)]
        for line, (to, at) in enumerate(places, start=1)
    ]
    assert entry["files"] == {"en-zh_cn": 3, "en-zh_tw": 2}
    assert entry["archives"] == {f: f"C/v1/moses/{f}.txt.zip" for f in ("en-zh_cn", "en-zh_tw")}
    assert entry["threshold"] is None
    assert entry["read"] == entry["kept"] == 5
    lines, _ = clean_files(tmp_path, {"cmn-en": 1, PAIR: 1}, turned=frozenset({"cmn-en"}))
    assert lines == [["cmn-en en 0", "cmn-en cmn 0", "1"], ["en-zh en 0", "en-zh zh 0", "2"]]


def test_a_cap_applies_to_each_file(tmp_path):
    files = {"en-zh_cn": 9, "en-zh_tw": 4, PAIR: 2}
    lines, entry = clean_files(tmp_path, files, max_pairs={"zh": 4})
    assert [sum(line[0].startswith(f"{f} ") for line in lines) for f in files] == [4, 4, 2]
    assert (entry["read"], entry["removed"]["cap"], entry["kept"]) == (15, 5, 10)


@pytest.mark.parametrize(
    ("files", "part", "numbers"),
    [(TWO, "validation", [1, 2, 3, 6, 7]), (TWO, "train", [4, 5]), ({PAIR: 3}, "train", [])],
)
def test_the_first_lines_of_each_file_are_one_part(tmp_path, files, part, numbers):
    lines, entry = clean_files(tmp_path, files, split=FIRST, part=part)
    assert [int(line[2]) for line in lines] == numbers
    assert entry["read"] == entry["kept"] == len(numbers)


@pytest.mark.parametrize(("threshold", "kept"), [(1.075, 2), (1.0, 3), (1.5, 0)])
def test_mined_pairs_below_the_threshold_are_not_read(tmp_path, threshold, kept):
    path = corpora.write_mined(tmp_path, PAIR, texts(PAIR, 3), [1.2, 1.075, 1.01])
    lines, entry = clean_files(tmp_path, {PAIR: 3}, [path], threshold=threshold)
    assert [int(line[2]) for line in lines] == list(range(1, kept + 1))
    assert (entry["read"], entry["files"], entry["threshold"]) == (kept, {PAIR: kept}, threshold)
    assert entry["archives"] == {PAIR: "C/v1/mined/WikiMatrix.en-zh.tsv.gz"}


def test_only_a_file_of_opus_may_be_all_benchmark(tmp_path, caplog):
    for name, own in (("C", False), ("UNPC", True), ("UNPC", False)):
        path = write_zip(tmp_path, name, "v1.0", PAIR, [{"en": "", "zh": "x"}] * 2)
        corpus = {"custom": own, "name": name, "version": "v1.0"}
        job = partial(clean_files, tmp_path, {PAIR: 2}, [path], **corpus)
        if name == "C" or own:
            assert re.search(r"zip: cleaning removed all 2 pairs: .*'one_empty': 2", one_line(job))
            assert not list(tmp_path.glob("*out*"))
    assert job()[1]["removed"]["one_empty"] == 2
    assert "cleaning removed all 2 pairs" in caplog.text


# --- real corpora, where they are available: known overlaps with the real Tatoeba v1

OVERLAPS = [  # exact matches in the pair's own language, and by the default key in all languages
    ("de", "plain", {"Tatoeba": 735, "Mozilla-I10n": 1}),
    ("ja", "plain", {"Tatoeba": 1023}),
    ("ta", "plain", {"Tatoeba": 301}),
    ("eu", "folded", 361),
]


@pytest.mark.parametrize(("code", "key", "expected"), OVERLAPS)
def test_real_corpora_lose_the_documented_number_of_pairs(tmp_path, code, key, expected):
    needs(SHARED.is_dir(), "the real corpora are not available")
    folder, counts = SHARED / "tatoeba_v1", Counter()
    every = {path.name.split(".")[2] for path in folder.glob("tatoeba.*-eng.*")} - {"eng"}
    assert len(every) == 112
    codes = every if key == "folded" else [load_languages()[code].tatoeba_v1]
    read = {f"tatoeba/{code}": partial(read_language, folder, code) for code in codes}
    write_eval_keys(key, read, tmp_path / "keys.tsv")
    keys = EvalKeys([tmp_path / "keys.tsv"], key).of(None)
    pair = "-".join(sorted(("en", code)))
    for path in sorted((SHARED / "opus").glob(f"*/*/moses/{pair}.txt.zip")):
        corpus, report = path.parts[-4], CleanReport()
        pairs = ((first, second, 0) for first, second in read_pairs(path, corpus, pair))
        assert all(passed(pairs, report, ("a", "b"), keys, key))
        counts[corpus] = report.removed["evaluation"]
    assert (counts.total() if key == "folded" else dict(+counts)) == expected
