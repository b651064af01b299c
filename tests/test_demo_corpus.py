"""The demo corpus: sizes, disjointness, the planted leak, scripts, and the layout of its mirror."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter

import pytest
from text_made import law

from ems.base.files import sha256_file
from ems.benchmarks.tatoeba.data import read_language
from ems.corpora.demo import LEAKED_PAIRS
from ems.corpora.demo.build import build
from ems.corpora.demo.free import read_free
from ems.corpora.demo.grammar import BENCHMARK_ONLY, LANGUAGES, read_lexicon, read_templates
from ems.corpora.demo.leak import disguise
from ems.corpora.moses import read_pairs

ISO3 = {"de": "deu", "fr": "fra", "es": "spa", "ru": "rus", "zh": "cmn", "ja": "jpn", "ar": "ara"}
OTHERS = tuple(ISO3)
UNSEEN = {"it": "ita"}  # of the benchmark alone
MOSES = {"ar-en", "de-en", "en-es", "en-fr", "en-ja", "en-ru", "en-zh"}
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
    own, english = read_language(root / "tatoeba", {**ISO3, **UNSEEN}[language])
    return list(zip(english, own, strict=True))


root = pytest.fixture(scope="module", name="root")(lambda demo_mirror: demo_mirror)


@pytest.fixture(scope="module")
def demo():
    return build()


@pytest.fixture(scope="module")
def learnt(demo):
    """Every sentence of training and validation, without the leak."""
    return [s for listed in demo.train.values() for s in listed] + demo.dev


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


def test_each_language_has_enough_pairs_and_no_pair_twice(pairs):
    for language in OTHERS:
        train, dev, bench = (pairs[part][language] for part in ("train", "dev", "bench"))
        assert len(train) - LEAKED_PAIRS >= 17_500
        assert (len(dev), len(bench)) == (300, 600)
        assert all(len(set(part)) == len(part) for part in (train, dev, bench))


def test_within_a_split_translation_is_one_to_one(keys, bench_keys):
    for part in ("dev", "bench", "train"):
        for listed in keys[part].values():
            clean = [p for p in listed if part == "bench" or bench_keys.isdisjoint(p)]
            for side in (0, 1):
                assert len({pair[side] for pair in clean}) == len(clean)


def test_the_leak_is_40_verbatim_40_disguised_and_20_of_each_side_alone(keys, pairs, bench_keys):
    assert LEAKED_PAIRS == 120
    texts = {side for listed in pairs["bench"].values() for pair in listed for side in pair}
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
        assert sum(not texts.isdisjoint(pair) for pair in pairs["train"][language]) == 80


def test_validation_is_disjoint_from_training_and_benchmark_on_both_sides(keys, bench_keys):
    train = {side for listed in keys["train"].values() for pair in listed for side in pair}
    for listed in keys["dev"].values():
        for pair in listed:
            assert train.isdisjoint(pair)
            assert bench_keys.isdisjoint(pair)


def test_half_of_the_benchmark_is_held_out_templates_and_training_has_none_of_them(demo, learnt):
    kinds = Counter(s.template.heldout if s.template else None for s in demo.benchmark)
    assert kinds == {True: 300, None: 40, False: 260}
    heldout = Counter(s.template.name for s in demo.benchmark if s.template and s.template.heldout)
    assert len(heldout) >= 16
    assert max(heldout.values()) - min(heldout.values()) <= 1
    assert not any(s.template.heldout for s in learnt if s.template)
    assert len({s.template.name for s in learnt if s.template}) >= 40


def test_a_language_of_the_benchmark_alone_has_held_out_sentences_of_the_others(demo, pairs, root):
    assert tuple(UNSEEN) == BENCHMARK_ONLY
    german = dict(pairs["bench"]["de"])
    heldout = {s.texts["en"] for s in demo.benchmark if s.template and s.template.heldout}
    for language in UNSEEN:
        sentences = read_tatoeba(root, language)
        assert len(sentences) == len({law(own) for _, own in sentences}) == 180
        english = [sentence for sentence, _ in sentences]
        assert english == [sentence for sentence in german if sentence in set(english)]
        assert set(english) <= heldout
        names = {s.template.name for s in demo.benchmark if language in s.texts}
        assert len(names) == 12


def test_no_other_file_and_no_sentence_of_the_corpus_is_in_a_language_of_the_benchmark_alone(
    learnt, keys, root
):
    for language, code in UNSEEN.items():
        unseen = {law(own) for _, own in read_tatoeba(root, language)}
        for part in ("train", "dev"):
            for listed in keys[part].values():
                assert unseen.isdisjoint(key for pair in listed for key in pair)
        assert not any(language in sentence.texts for sentence in learnt)
        sums = json.loads((root / "manifest.json").read_text("utf-8"))["sha256"]
        named = {path for path in sums if code in path}
        assert named == {f"tatoeba/tatoeba.{code}-eng.{side}" for side in (code, "eng")}


def test_every_free_sentence_is_in_exactly_one_split(demo):
    free = sorted(sentence["en"] for sentence in read_free())
    for language in OTHERS:
        everywhere = [*demo.benchmark, *demo.dev, *demo.train[language]]
        assert sorted(s.texts["en"] for s in everywhere if s.template is None) == free


def test_two_languages_share_about_half_of_their_english_sentences(pairs):
    english = {x: {pair[0] for pair in listed} for x, listed in pairs["train"].items()}
    for a in OTHERS:
        for b in set(OTHERS) - {a}:
            assert 0.45 < len(english[a] & english[b]) / len(english[a]) < 0.65


def test_the_lexicon_is_large_and_its_words_differ_in_every_language():
    lexicon = read_lexicon()
    assert sum(category.size for category in lexicon.values()) >= 250
    for name, category in lexicon.items():
        written = [code for code in (*LANGUAGES, *BENCHMARK_ONLY) if code in category.default]
        assert written[: len(LANGUAGES)] == list(LANGUAGES)
        for language in written:
            columns = [of for (code, _), of in category.columns.items() if code == language]
            assert len(set(zip(*columns, strict=True))) == category.size, (name, language)


def test_there_are_enough_templates_and_their_space_is_far_larger_than_the_sample():
    templates = read_templates(read_lexicon())
    assert sum(not t.heldout for t in templates) >= 40
    assert sum(t.heldout for t in templates) >= 16
    assert len({t.name for t in templates}) == len(templates)
    assert sum(t.space for t in templates if not t.heldout) > 1_000_000


def test_every_sentence_is_clean_and_in_its_own_script(demo):
    allowed = {language: re.compile(rf"[{script}\W\d]+") for language, script in SCRIPT.items()}
    for sentence in [*demo.benchmark, *demo.dev, *demo.train["de"]]:
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
def test_contractions_elisions_and_articles_are_made(demo, language):
    wrong = re.compile(WRONG[language])
    sentences = demo.train["fr"] + demo.benchmark
    texts = [s.texts[language] for s in sentences if s.template and language in s.texts]
    assert len(texts) >= 180
    assert not [text for text in texts if wrong.search(text)]


# --- the mirror


def test_the_same_bytes_in_another_process_with_another_hash_seed(root, tmp_path):
    again = tmp_path / "again"
    code = f"import pathlib, ems.corpora.demo as d; d.write_mirror(pathlib.Path({str(again)!r}))"
    seed = str(int(os.environ.get("PYTHONHASHSEED", "0").replace("random", "0")) + 1)
    environment = os.environ | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    own = [path for path in files if path.parts[0] in ("opus", "tatoeba", "manifest.json")]
    assert len(own) == 7 * 2 + 14 + 2 + 1
    assert len(files) > len(own) + 1000  # the other evaluation sets
    for path in files:
        assert sha256_file(root / path) == sha256_file(again / path), path


def test_the_manifest_counts_and_sums_every_file_and_is_written_last(root):
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    files = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    assert set(manifest["sha256"]) == files - {"manifest.json", ".ems-demo"}
    for path, digest in manifest["sha256"].items():
        assert sha256_file(root / path) == digest
    times = {name: (root / name).stat().st_mtime_ns for name in files}
    assert times["manifest.json"] == max(times.values())
    trained = {"leaked": LEAKED_PAIRS, "dev": 300, "benchmark": 600}
    expected = {x: {"train": len(read_moses(root, "Demo", x)), **trained} for x in OTHERS}
    expected["it"] = {"train": 0, "leaked": 0, "dev": 0, "benchmark": 180}
    assert manifest["counts"] == expected


def test_zips_have_the_opus_layout_with_as_many_links_as_lines(root):
    for corpus in ("Demo", "DemoDev"):
        folder = root / "opus" / corpus / "v1" / "moses"
        assert {path.name for path in folder.iterdir()} == {f"{pair}.txt.zip" for pair in MOSES}
        for pair in MOSES:
            with zipfile.ZipFile(folder / f"{pair}.txt.zip") as archive:
                members = {i.filename: archive.read(i).decode("utf-8") for i in archive.infolist()}
            texts = [f"{corpus}.{pair}.{code}" for code in pair.split("-")]
            alignment = f"{corpus}.{pair}.xml"
            assert list(members) == ["README", "LICENSE", *texts, alignment]
            lines = {len(members[name].splitlines()) for name in texts}
            assert lines == {members[alignment].count("<link ")}


@pytest.mark.parametrize("number", range(5))
def test_a_disguise_changes_the_text_but_not_its_key(number):
    for text in (
        "Große Straße?",
        "Où est l'été ?",
        "ペンはどこ。",
        "你在哪里？",
        "هل تقرأ الآن؟",
        "Ёж спит.",
    ):
        changed = disguise(text, number)
        assert changed != text
        assert law(changed) == law(text)
