"""The demo corpus: sizes, disjointness, the planted leak, scripts, and the layout of its mirror."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from demo_made import law

from ems.corpora.demo import LEAKED_PAIRS
from ems.corpora.demo.build import Demo, build
from ems.corpora.demo.free import read_free
from ems.corpora.demo.grammar import (
    BENCHMARK_ONLY,
    LANGUAGES,
    read_lexicon,
    read_templates,
)
from ems.corpora.demo.leak import disguise
from ems.files import sha256_file

ISO3 = {"de": "deu", "fr": "fra", "es": "spa", "ru": "rus", "zh": "cmn", "ja": "jpn", "ar": "ara"}
OTHERS = tuple(ISO3)
UNSEEN = {"it": "ita"}  # of the benchmark alone
MOSES = {"ar-en", "de-en", "en-es", "en-fr", "en-ja", "en-ru", "en-zh"}
LATIN = r"A-Za-zÀ-ÖØ-öø-ÿœŒ"
SCRIPT = {  # every letter of a sentence is one of these
    "en": LATIN,
    "de": LATIN,
    "fr": LATIN,
    "es": LATIN,
    "ru": "А-Яа-яЁё",
    "zh": "\u4e00-\u9fff",
    "ja": "\u3040-\u30ff\u4e00-\u9fff々ー",
    "ar": "\u0621-\u064a",
    "it": LATIN,
}


def read_moses(root: Path, corpus: str, language: str) -> list[tuple[str, str]]:
    """The pairs (English, other) of one zip."""
    pair = "-".join(sorted(("en", language)))
    with zipfile.ZipFile(root / "opus" / corpus / "v1" / "moses" / f"{pair}.txt.zip") as archive:
        sides = [
            archive.read(f"{corpus}.{pair}.{code}").decode("utf-8").removesuffix("\n").split("\n")
            for code in ("en", language)
        ]
    return list(zip(*sides, strict=True))


def read_tatoeba(root: Path, language: str) -> list[tuple[str, str]]:
    """The benchmark pairs (English, other) of one language."""
    own = {**ISO3, **UNSEEN}[language]
    stem = root / "tatoeba" / f"tatoeba.{own}-eng"
    sides = [
        Path(f"{stem}.{code}").read_text("utf-8").removesuffix("\n").split("\n")
        for code in ("eng", own)
    ]
    return list(zip(*sides, strict=True))


@pytest.fixture(scope="module")
def root(demo_mirror: Path) -> Path:
    return demo_mirror


@pytest.fixture(scope="module")
def demo() -> Demo:
    return build()


@pytest.fixture(scope="module")
def pairs(root: Path) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """What the files hold: {"train" | "dev" | "bench": {language: pairs}}."""
    return {
        "train": {language: read_moses(root, "Demo", language) for language in OTHERS},
        "dev": {language: read_moses(root, "DemoDev", language) for language in OTHERS},
        "bench": {language: read_tatoeba(root, language) for language in OTHERS},
    }


@pytest.fixture(scope="module")
def keys(pairs) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """The same under `law`."""
    memo: dict[str, str] = {}

    def fold(text: str) -> str:
        return memo.setdefault(text, law(text)) if text not in memo else memo[text]

    return {
        part: {x: [(fold(a), fold(b)) for a, b in listed] for x, listed in of.items()}
        for part, of in pairs.items()
    }


@pytest.fixture(scope="module")
def bench_keys(keys) -> set[str]:
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


def test_training_meets_the_benchmark_in_exactly_the_leaked_pairs(keys, bench_keys):
    assert LEAKED_PAIRS == 120
    for listed in keys["train"].values():
        assert sum(not bench_keys.isdisjoint(pair) for pair in listed) == LEAKED_PAIRS


def test_a_verbatim_comparison_finds_only_a_part_of_the_leak(pairs):
    bench = {side for listed in pairs["bench"].values() for pair in listed for side in pair}
    for listed in pairs["train"].values():
        assert sum(not bench.isdisjoint(pair) for pair in listed) == 80


def test_the_leak_is_40_verbatim_40_disguised_and_20_of_each_side_alone(keys, pairs):
    for language in OTHERS:
        verbatim, bench = set(pairs["bench"][language]), set(keys["bench"][language])
        english, other = ({pair[side] for pair in bench} for side in (0, 1))
        kinds = Counter()
        for pair, key in zip(pairs["train"][language], keys["train"][language], strict=True):
            sides = (key[0] in english, key[1] in other)
            if any(sides):
                kinds[sides, key in bench, pair in verbatim] += 1
        assert kinds == {
            ((True, True), True, True): 40,
            ((True, True), True, False): 40,
            ((True, False), False, False): 20,
            ((False, True), False, False): 20,
        }


def test_validation_is_disjoint_from_training_and_benchmark_on_both_sides(keys, bench_keys):
    train = {side for listed in keys["train"].values() for pair in listed for side in pair}
    for listed in keys["dev"].values():
        for pair in listed:
            assert train.isdisjoint(pair)
            assert bench_keys.isdisjoint(pair)


def test_half_of_the_benchmark_is_held_out_templates_and_training_has_none_of_them(demo):
    kinds = Counter(s.template.heldout if s.template else None for s in demo.benchmark)
    assert kinds == {True: 300, None: 40, False: 260}
    heldout = Counter(s.template.name for s in demo.benchmark if s.template and s.template.heldout)
    assert len(heldout) >= 16
    assert max(heldout.values()) - min(heldout.values()) <= 1
    learnt = [s for listed in demo.train.values() for s in listed] + demo.dev
    assert not any(s.template.heldout for s in learnt if s.template)
    assert len({s.template.name for s in learnt if s.template}) >= 40


def test_a_language_of_the_benchmark_alone_has_held_out_sentences_of_the_others(demo, pairs, root):
    assert tuple(UNSEEN) == BENCHMARK_ONLY
    german = dict(pairs["bench"]["de"])
    heldout = {s.texts["en"] for s in demo.benchmark if s.template and s.template.heldout}
    for language in UNSEEN:
        found = read_tatoeba(root, language)
        assert len(found) == len({law(own) for _, own in found}) == 180
        english = [sentence for sentence, _ in found]
        assert english == [sentence for sentence in german if sentence in set(english)]
        assert set(english) <= heldout
        names = {s.template.name for s in demo.benchmark if language in s.texts}
        assert len(names) == 12


def test_no_other_file_and_no_sentence_of_the_corpus_is_in_a_language_of_the_benchmark_alone(
    demo, keys, root
):
    for language, code in UNSEEN.items():
        unseen = {law(own) for _, own in read_tatoeba(root, language)}
        for part in ("train", "dev"):
            for listed in keys[part].values():
                assert unseen.isdisjoint(key for pair in listed for key in pair)
        learnt = [s for listed in demo.train.values() for s in listed] + demo.dev
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
            rows = {
                tuple(
                    column[k] for (code, _), column in category.columns.items() if code == language
                )
                for k in range(category.size)
            }
            assert len(rows) == category.size, (name, language)


def test_there_are_enough_templates_and_their_space_is_far_larger_than_the_sample():
    templates = read_templates(read_lexicon())
    assert sum(not t.heldout for t in templates) >= 40
    assert sum(t.heldout for t in templates) >= 16
    assert len({t.name for t in templates}) == len(templates)
    assert sum(t.space for t in templates if not t.heldout) > 1_000_000


def test_every_sentence_is_clean_and_in_its_own_script(demo):
    allowed = {language: re.compile(rf"[{script}\W\d]+") for language, script in SCRIPT.items()}
    final = {
        language: ("。", "！", "？") if language in ("zh", "ja") else (".", "!", "?")
        for language in (*LANGUAGES, *BENCHMARK_ONLY)
    }
    final["ar"] = (".", "!", "؟")
    sentences = [*demo.benchmark, *demo.dev, *demo.train["de"]]
    for sentence in sentences:
        for language, text in sentence.texts.items():
            assert not re.search(r"[{}|/_\t\n@]|  |^ | $|\.[a-z]", text), text
            assert text.endswith(final[language]), text
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


def test_the_same_bytes_in_another_process_with_another_hash_seed(root, tmp_path):
    again = str(tmp_path / "again")
    code = f"import pathlib, ems.corpora.demo as d; d.write_mirror(pathlib.Path({again!r}))"
    seed = str(int(os.environ.get("PYTHONHASHSEED", "0").replace("random", "0")) + 1)
    environment = os.environ | {"PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    own = [path for path in files if path.parts[0] in ("opus", "tatoeba", "manifest.json")]
    assert len(own) == 7 * 2 + 14 + 2 + 1
    assert len(files) > len(own) + 1000  # the other evaluation sets
    for path in files:
        assert sha256_file(root / path) == sha256_file(tmp_path / "again" / path), path


def test_the_manifest_counts_and_sums_every_file(root):
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    files = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    assert set(manifest["sha256"]) == files - {"manifest.json", ".ems-demo"}
    for path, digest in manifest["sha256"].items():
        assert sha256_file(root / path) == digest
    for language in OTHERS:
        assert manifest["counts"][language] == {
            "train": len(read_moses(root, "Demo", language)),
            "leaked": LEAKED_PAIRS,
            "dev": 300,
            "benchmark": 600,
        }
    nothing = {"train": 0, "leaked": 0, "dev": 0}
    assert manifest["counts"]["it"] == nothing | {"benchmark": 180}
    assert set(manifest["counts"]) == {*OTHERS, "it"}


def test_zips_have_the_opus_layout_with_as_many_links_as_lines(root):
    for corpus in ("Demo", "DemoDev"):
        folder = root / "opus" / corpus / "v1" / "moses"
        assert {path.name for path in folder.iterdir()} == {f"{pair}.txt.zip" for pair in MOSES}
        for pair in MOSES:
            a, b = pair.split("-")
            with zipfile.ZipFile(folder / f"{pair}.txt.zip") as archive:
                members = {i.filename: archive.read(i).decode("utf-8") for i in archive.infolist()}
            stem = f"{corpus}.{pair}"
            assert list(members) == [
                "README",
                "LICENSE",
                f"{stem}.{a}",
                f"{stem}.{b}",
                f"{stem}.xml",
            ]
            lines = {members[f"{stem}.{code}"].count("\n") for code in (a, b)}
            assert lines == {members[f"{stem}.xml"].count("<link ")}
            assert len(members[f"{stem}.{a}"].splitlines()) in lines


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
