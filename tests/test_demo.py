"""The demo: laws of its corpus and its mirror, and what `make all` must have given with it."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter

import pytest
from conftest import ROOT, needs
from results_made import means
from text_made import law

from ems.base.errors import EmsError
from ems.base.files import sha256_file
from ems.bench.scores import UNSEEN, read_score_file
from ems.benchmarks.tatoeba.data import read_language
from ems.corpora.demo.grammar import (
    BENCHMARK_ONLY,
    LANGUAGES,
    OTHERS,
    quotas,
    read_free,
    read_lexicon,
)
from ems.corpora.demo.texts import LEAKED_PAIRS, build, disguise
from ems.corpora.moses import read_pairs

RESULTS = ROOT / "results/demo"
ISO3 = {"de": "deu", "fr": "fra", "es": "spa", "ru": "rus", "zh": "cmn", "ja": "jpn", "ar": "ara"}
ISO3 |= {"it": "ita"}
LATIN = r"A-Za-zÀ-ÖØ-öø-ÿœŒ"
SCRIPT = dict.fromkeys(("en", "de", "fr", "es", "it"), LATIN) | {  # all letters of a sentence
    "ru": "А-Яа-яЁё",
    "zh": "\u4e00-\u9fff",
    "ja": "\u3040-\u30ff\u4e00-\u9fff々ー",
    "ar": "\u0621-\u064a",
}
FINAL = dict.fromkeys(SCRIPT, (".", "!", "?"))
FINAL |= {"ar": (".", "!", "؟"), **dict.fromkeys(("zh", "ja"), ("。", "！", "？"))}


def read_moses(root, corpus, language):
    """The pairs (English, other) of one zip."""
    pair = "-".join(sorted(("en", language)))
    path = root / "opus" / corpus / "v1" / "moses" / f"{pair}.txt.zip"
    pairs = read_pairs(path, corpus, pair)
    return [sides if pair.startswith("en-") else sides[::-1] for sides in map(tuple, pairs)]


def read_tatoeba(root, language):
    """The benchmark pairs (English, other) of one language."""
    own, english = read_language(root / "tatoeba", ISO3[language])
    return list(zip(english, own, strict=True))


root = pytest.fixture(scope="module", name="root")(lambda demo_mirror: demo_mirror)
material = pytest.fixture(scope="module", name="material")(build)


@pytest.fixture(scope="module")
def pairs(root):
    """What the files hold: {"train" | "dev" | "bench": {language: pairs}}."""
    return {
        "train": {language: read_moses(root, "Demo", language) for language in OTHERS},
        "dev": {language: read_moses(root, "DemoDev", language) for language in OTHERS},
        "bench": {language: read_tatoeba(root, language) for language in OTHERS},
    }


@pytest.fixture(scope="module")
def keys(pairs):
    """The same under `law`."""
    texts = {s for of in pairs.values() for listed in of.values() for pair in listed for s in pair}
    folded = {text: law(text) for text in texts}
    return {
        part: {x: [(folded[a], folded[b]) for a, b in listed] for x, listed in of.items()}
        for part, of in pairs.items()
    }


@pytest.fixture(scope="module")
def bench_keys(keys):
    return {side for listed in keys["bench"].values() for pair in listed for side in pair}


# --- what goes where


def test_each_split_has_enough_pairs_and_translation_is_one_to_one(pairs, keys, bench_keys):
    for language in OTHERS:
        train, dev, bench = (pairs[part][language] for part in ("train", "dev", "bench"))
        assert len(train) - LEAKED_PAIRS >= 17_500
        assert (len(dev), len(bench)) == (300, 600)
        for part in keys:
            clean = [
                pair
                for pair in keys[part][language]
                if part == "bench" or bench_keys.isdisjoint(pair)
            ]
            assert all(len({pair[side] for pair in clean}) == len(clean) for side in (0, 1))


def test_the_leak_is_40_verbatim_40_disguised_and_20_of_each_side_alone(keys, pairs, bench_keys):
    for language in OTHERS:
        verbatim, bench = set(pairs["bench"][language]), set(keys["bench"][language])
        english, other = ({pair[side] for pair in bench} for side in (0, 1))
        kinds = Counter(
            ((key[0] in english, key[1] in other), key in bench, pair in verbatim)
            for pair, key in zip(pairs["train"][language], keys["train"][language], strict=True)
            if not bench_keys.isdisjoint(key)
        )
        assert kinds == {
            ((True, True), True, True): 40,
            ((True, True), True, False): 40,
            ((True, False), False, False): 20,
            ((False, True), False, False): 20,
        }


def test_validation_is_disjoint_from_training_and_benchmark_on_both_sides(keys, bench_keys):
    train = {side for listed in keys["train"].values() for pair in listed for side in pair}
    dev = {side for listed in keys["dev"].values() for pair in listed for side in pair}
    assert train.isdisjoint(dev)
    assert bench_keys.isdisjoint(dev)


def test_half_of_the_benchmark_is_of_templates_and_training_has_none_of_them(material):
    kinds = Counter(s.template.heldout if s.template else None for s in material.benchmark)
    assert kinds == {True: 300, None: 40, False: 260}
    learnt = [s for listed in material.train.values() for s in listed] + material.dev
    assert not any(s.template.heldout for s in learnt if s.template)
    assert len({s.template.name for s in learnt if s.template}) >= 40


def test_italian_has_held_out_sentences_of_the_benchmark_and_is_nowhere_else(material, keys, root):
    sentences = read_tatoeba(root, "it")
    unseen = {law(own) for _, own in sentences}
    assert BENCHMARK_ONLY == ("it",)
    assert len(sentences) == len(unseen) == 180
    heldout = {s.texts["en"] for s in material.benchmark if s.template and s.template.heldout}
    assert {english for english, _ in sentences} <= heldout
    for part in ("train", "dev"):
        for listed in keys[part].values():
            assert unseen.isdisjoint(key for pair in listed for key in pair)
    sums = json.loads((root / "manifest.json").read_text("utf-8"))["sha256"]
    named = {path for path in sums if "ita" in path}
    assert named == {"tatoeba/tatoeba.ita-eng.ita", "tatoeba/tatoeba.ita-eng.eng"}


def test_two_languages_share_about_half_of_their_english_sentences(pairs):
    english = {x: {pair[0] for pair in listed} for x, listed in pairs["train"].items()}
    for one in OTHERS:
        for other in set(OTHERS) - {one}:
            assert 0.45 < len(english[one] & english[other]) / len(english[one]) < 0.65


def test_quotas_are_equal_up_to_the_capacities():
    assert quotas([100, 5, 100], 45) == [20, 5, 20]
    with pytest.raises(EmsError, match="too small"):
        quotas([1, 2], 4)


# --- what it says


def test_the_words_of_the_lexicon_differ_in_every_language():
    lexicon = read_lexicon()
    assert sum(category.size for category in lexicon.values()) >= 250
    for category in lexicon.values():
        languages = dict.fromkeys(code for code, _ in category.columns if code)
        assert tuple(languages)[: len(LANGUAGES)] == LANGUAGES
        for language in languages:
            columns = [of for (code, _), of in category.columns.items() if code == language]
            words = set(zip(*columns, strict=True))
            assert len(words) == category.size, (category.name, language)
            assert all(map(all, words)), (category.name, language)


def test_every_frame_shows_all_of_its_slots_in_every_language(material):
    templates = material.templates.values()
    for template in (*templates, *material.reworded.values()):
        assert tuple(template.frames)[: len(LANGUAGES)] == LANGUAGES, template.name
        for pieces in template.frames.values():
            shown = {piece.slot for piece in pieces if not isinstance(piece, str)}
            assert len(shown) == len(template.slots), template.name
    assert sum(template.space for template in templates if not template.heldout) > 1_000_000


def test_every_sentence_is_clean_and_in_its_own_script(material):
    free = read_free()
    assert len(free) >= 120
    assert all(tuple(sentence) == LANGUAGES for sentence in free)
    allowed = {language: re.compile(rf"[{script}\W\d]+") for language, script in SCRIPT.items()}
    for sentence in [*material.benchmark, *material.dev, *material.train["de"]]:
        for language, text in sentence.texts.items():
            assert not re.search(r"[{}|/_\t\n@]|  |^ | $|\.[a-z]", text), text
            assert text.endswith(FINAL[language]), text
            assert sentence.template is None or allowed[language].fullmatch(text), text


WRONG = {  # what a missed contraction, elision or article looks like
    "en": r"\ba (?=[aeiou])|\ban (?=[^aeio])",
    "de": r"\bzu (?:dem|der)\b|\bin dem\b|\ban dem\b",
    "fr": r"\b[àÀ] le |\bde les? |\b(?:de|que|le|la) (?!huit|onze)[aeiouâêéèh]"
    r"|\b(?:de|que) (?:Anna|Elena|Omar)\b",
    "es": r"\ba el |\bde el | y i|\bA el |\bDe el ",
    "it": r"\b[Aa] [aA]|\b(?:[aA]|[dD][ai]|[iI]n|[sS]u) (?:il|lo|la|i|gli|le|l') ?|\bdove è"
    r"|\b(?:[lL]|[aA]ll|[dD]ell|[sS]ull|[uU]n)[ao] [aeiouhAEIOU]"
    r"|\b(?:[iI]l|[aA]l|[dD]el|[sS]ul) (?:[aeiou]|z|s[bcdfglmnpqrtvz])",
}


@pytest.mark.parametrize("language", WRONG)
def test_contractions_elisions_and_articles_are_made(material, language):
    wrong = re.compile(WRONG[language])
    sentences = material.train["fr"] + material.benchmark
    texts = [s.texts[language] for s in sentences if s.template and language in s.texts]
    assert len(texts) >= 180
    assert not [text for text in texts if wrong.search(text)]


@pytest.mark.parametrize("number", range(5))
def test_a_disguise_changes_the_text_but_not_its_key(number):
    for text in ("Große Straße?", "Où est l'été ?", "ペンはどこ。", "هل تقرأ الآن؟", "Ёж спит."):
        changed = disguise(text, number)
        assert changed != text
        assert law(changed) == law(text)


# --- the mirror


def test_the_same_bytes_in_another_process_with_another_hash_seed(root, tmp_path):
    again = tmp_path / "again"
    code = "import pathlib, ems.corpora.demo.mirror as demo;"
    code += f"demo.write_mirror(pathlib.Path({str(again)!r}))"
    seed = str(int(os.environ.get("PYTHONHASHSEED", "0").replace("random", "0")) + 1)
    environment = os.environ | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    for path in (path.relative_to(root) for path in root.rglob("*") if path.is_file()):
        assert sha256_file(root / path) == sha256_file(again / path), path


def test_the_manifest_counts_and_sums_every_file_and_is_written_last(root):
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    files = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    assert len(files) > 1000
    assert set(manifest["sha256"]) == files - {"manifest.json", ".ems-demo"}
    for path, digest in manifest["sha256"].items():
        assert sha256_file(root / path) == digest
    times = {name: (root / name).stat().st_mtime_ns for name in files}
    assert times["manifest.json"] == max(times.values())
    trained = {"leaked": LEAKED_PAIRS, "dev": 300, "benchmark": 600}
    expected = {x: {"train": len(read_moses(root, "Demo", x)), **trained} for x in OTHERS}
    expected["it"] = {"train": 0, "leaked": 0, "dev": 0, "benchmark": 180}
    assert manifest["counts"] == expected


def test_zips_have_the_opus_layout_with_a_licence_and_as_many_links_as_lines(root):
    pairs = {"ar-en", "de-en", "en-es", "en-fr", "en-ja", "en-ru", "en-zh"}
    for corpus in ("Demo", "DemoDev"):
        folder = root / "opus" / corpus / "v1" / "moses"
        assert {path.name for path in folder.iterdir()} == {f"{pair}.txt.zip" for pair in pairs}
        for pair in pairs:
            with zipfile.ZipFile(folder / f"{pair}.txt.zip") as archive:
                members = {i.filename: archive.read(i).decode("utf-8") for i in archive.infolist()}
            texts = [f"{corpus}.{pair}.{code}" for code in pair.split("-")]
            alignment = f"{corpus}.{pair}.xml"
            assert list(members) == ["README", "LICENSE", *texts, alignment]
            assert "under the licence of EMS (MIT)" in members["LICENSE"]
            lines = {len(members[name].splitlines()) for name in texts}
            assert lines == {members[alignment].count("<link ")}
            assert (f"{LEAKED_PAIRS} of the pairs" in members["README"]) == (corpus == "Demo")


# --- what `make all` must have given


def _mean(system):
    """P@1 of the languages trained on."""
    path = RESULTS / f"scores/{system}/tatoeba.json"
    needs(path.exists(), f"{path} is not there; run `make all` first")
    scores = read_score_file(path)
    seen = [value for code, value in means(scores).items() if scores.languages[code] != UNSEEN]
    assert len(seen) == len(scores.languages) - 1 == 7
    return sum(seen) / len(seen)


def test_ems_finds_at_least_80_percent_of_the_translations():
    assert _mean("ems") >= 80


@pytest.mark.parametrize(("system", "percent"), [("untrained", 10), ("char-ngram", 25)])
def test_what_is_not_trained_finds_few(system, percent):
    assert _mean(system) < percent


def test_the_whole_planted_leak_is_removed_and_nothing_else():
    path = RESULTS / "reports/decontamination.json"
    needs(path.exists(), f"{path} is not there; run `make all` first")
    for entry in json.loads(path.read_text())["corpora"]:
        planted = LEAKED_PAIRS if entry["role"] == "train" else 0
        removed = dict.fromkeys(("cap", "both_empty", "one_empty"), 0) | {"evaluation": planted}
        assert entry["removed"] == removed
        assert entry["kept"] == entry["read"] - planted
        assert entry["kept"] >= 15_000 or entry["role"] == "validation"
