"""Laws of decontamination against several sets at once, from their files to the report."""

from collections import Counter

import pytest
from made.corpora import translations, write_flores, write_opus, write_sib, write_tatoeba
from made.experiments import MINIMAL, Settings

from ems.config.experiment import UNSEEN
from ems.config.languages import load_tatoeba_codes
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import eval_files, write_eval_keys

SETS = ["tatoeba", "flores200", "sib200", "ntrex"]
FLORES = {"en": "eng_Latn", "de": "deu_Latn"}
BASE = MINIMAL | {
    "languages": ["en", "de"],
    "evalsets": {name: {"version": "v1"} for name in SETS},
    "decontaminate": {"against": SETS},
}


def sentences(name, count=12):
    """Translations that no other name has: each word ends in it."""
    for item in translations(count, ["en", "de", "fr"], seed=name, least=3):
        yield {
            code: " ".join(f"{word}{name}" for word in text.split()) for code, text in item.items()
        }


def write_sets(mirror):
    """Four sets in English and German; FLORES and SIB share half of their sentences."""
    items = {name: list(sentences(name)) for name in SETS}
    items["sib200"][:6] = items["flores200"][:6]
    write_tatoeba(mirror, "deu", [(item["de"], item["en"]) for item in items["tatoeba"]])
    write_opus(mirror, "NTREX", "v1", [{c: item[c] for c in FLORES} for item in items["ntrex"]])
    for code, name in FLORES.items():
        write_flores(mirror, name, [item[code] for item in items["flores200"]])
        texts = [("travel", item[code]) for item in items["sib200"]]
        write_sib(mirror, name, {"train": texts[:4], "dev": texts[4:8], "test": texts[8:]})
    return items


def key(text):
    """What is compared of the plain words of this file."""
    return "".join(c for c in text.lower() if c.isalnum())


def write_keys(tmp_path, **changes):
    """(the experiment, its evaluation sentences as the stage evalkeys writes them)."""
    experiment = Settings(tmp_path / "settings", BASE | changes).load()
    folders = {name: tmp_path / name for name in SETS}
    folders["ntrex"] = tmp_path / "opus" / "NTREX" / "v1"
    write_eval_keys("folded", eval_files(experiment, folders), tmp_path / "evalkeys.tsv")
    return experiment, tmp_path / "evalkeys.tsv"


def clean(tmp_path, pairs, **changes):
    """((German, English) of the pairs that stay, the report) as the stage clean writes them."""
    experiment, keys = write_keys(tmp_path, **changes)
    items = [{"de": german, "en": english} for german, english in pairs]
    archive = write_opus(tmp_path, "Toy", "v1", items) / "moses" / "de-en.txt.zip"
    out = tmp_path / "out.tsv"
    entry = clean_corpus(experiment, CleanSource("Toy", "v1", "de-en", (archive,)), keys, out)
    return [tuple(line.split("\t")[:2]) for line in out.read_text().splitlines()], entry


def leaking(items):
    """Pairs of which most hold a sentence of a set on one side or on both, a few of two sets."""
    fine = [(item["de"], item["en"]) for item in sentences("fine", 60)]
    pairs = fine[:30]
    for name in SETS:
        for at, item in enumerate(items[name]):
            german, english = fine[30 + at]
            leaks = [(f"«{item['de'].upper()}»", english), (german, f"  {item['en']}!")]
            pairs += [*leaks, (item["de"], item["en"])][: 1 + at % 3]
    pairs.append((items["tatoeba"][0]["de"], items["ntrex"][0]["en"]))
    return pairs


def test_no_sentence_of_any_of_four_sets_is_left_and_each_pair_is_counted_once(tmp_path):
    items = write_sets(tmp_path)
    pairs = leaking(items)
    known = {
        name: {key(text) for item in items[name] for text in (item["de"], item["en"])}
        for name in SETS
    }
    expected, removed, by_benchmark = [], 0, {name: Counter() for name in SETS}
    for german, english in pairs:
        hits = {name: (key(german) in known[name], key(english) in known[name]) for name in SETS}
        if not any(map(any, hits.values())):
            expected.append((german, english))
            continue
        removed += 1
        for name, (first, second) in hits.items():
            by_benchmark[name].update(de=first, en=second, pairs=first or second)
    assert len(expected) >= 30
    assert sum(counts["pairs"] for counts in by_benchmark.values()) > removed > 60
    kept, entry = clean(tmp_path, pairs)
    assert kept == expected
    assert entry["read"] == len(pairs)
    assert {name: n for name, n in entry["removed"].items() if n} == {"evaluation": removed}
    assert entry["by_benchmark"] == {name: dict(counts) for name, counts in by_benchmark.items()}


def test_only_the_sets_that_are_named_are_looked_at(tmp_path):
    items = write_sets(tmp_path)
    pairs = [(items[name][9]["de"], f"new {name}") for name in SETS]
    kept, entry = clean(tmp_path, pairs, decontaminate={"against": ["sib200", "ntrex"]})
    assert kept == pairs[:2]
    assert set(entry["by_benchmark"]) == {"sib200", "ntrex"}


# --- languages that the experiment does not train on

UNSEEN_ONES = {"tatoeba": {"version": "v1", "languages": "all"}}


def write_all_of_tatoeba(mirror):
    """A sentence of each language of the benchmark, and its English."""
    items = {code: (f"wort {code}", f"word of {code}") for code in load_tatoeba_codes()}
    for code, item in items.items():
        write_tatoeba(mirror, code, [item])
    return items


@pytest.mark.parametrize("scope", ["any", "pair"])
def test_the_scope_pair_leaves_sentences_of_unseen_languages_and_any_does_not(tmp_path, scope):
    items = write_all_of_tatoeba(tmp_path)
    german, unseen = items["deu"], [items[code] for code in ("fra", "ang", "war")]
    pairs = [("neu", "new"), (german[0], "a"), ("b", german[1])]
    pairs += [(text, "c") for text, _ in unseen] + [("d", english) for _, english in unseen]
    settings = {"against": ["tatoeba"], "scope": scope}
    kept, entry = clean(tmp_path, pairs, evalsets=UNSEEN_ONES, decontaminate=settings)
    assert kept == (pairs[:1] if scope == "any" else [pairs[0], *pairs[3:]])
    assert entry["removed"]["evaluation"] == len(pairs) - len(kept)


def test_all_of_a_set_is_the_same_file_of_keys_whatever_is_trained_on(tmp_path):
    """Else one language more would clean every pair of every corpus again."""
    write_all_of_tatoeba(tmp_path)
    settings = {"evalsets": UNSEEN_ONES, "decontaminate": {"against": ["tatoeba"]}}
    experiment, path = write_keys(tmp_path, **settings)
    few = path.read_bytes()
    assert experiment.spoken("tatoeba")["fra"] == UNSEEN
    experiment, path = write_keys(tmp_path, languages=["en", "de", "fr"], **settings)
    assert experiment.spoken("tatoeba")["fra"] == "fr"
    assert path.read_bytes() == few
    assert few.count(b"\n") == 2 * 112 + 1  # the last line is the checksum
