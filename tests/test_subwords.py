"""Laws of the vocabulary: a fair and seeded sample, the same model each time, and its report."""

import json
import os
import random
import re
from collections import Counter
from itertools import chain

import pytest
from made import golden
from made.corpora import lexicon, write_lines
from made.experiments import SCHEMAS, one_line
from made.shards import LANGUAGES, WORDS
from made.text import of_languages
from sentencepiece import SentencePieceTrainer

from ems.base.texts import batched
from ems.tables.corpora import write_vocabulary_table
from ems.text import subwords, vocabulary_report
from ems.text.subwords import UNK, WordEncoder, encode_lines, languages_of, load_vocabulary, quotas
from ems.text.tsv import read_tsv
from ems.text.vocabulary_report import script_of, write_vocabulary_report

# --- quotas


def own_shares(counts, total, temperature):
    """min(n_l, s n_l^(1/T)), with the scale s at which they add up to the total, by bisection."""
    low, high = 0.0, 1e9
    for _ in range(100):
        scale = (low + high) / 2
        shares = {code: min(n, scale * n ** (1 / temperature)) for code, n in counts.items()}
        low, high = (scale, high) if sum(shares.values()) < total else (low, scale)
    return shares


@pytest.mark.parametrize("temperature", [1, 2, 5, 100])
@pytest.mark.parametrize("total", [0, 1, 7, 500, 5_000, 11_110, 99_999])
def test_quotas_follow_the_temperature_and_use_up_the_total(temperature, total):
    counts = {"en": 10_000, "de": 1_000, "sw": 100, "yo": 10}
    chosen = quotas(counts, total, temperature)
    assert sum(chosen.values()) == min(total, 11_110)
    assert all(0 <= chosen[code] <= counts[code] for code in counts)
    expected = own_shares(counts, total, temperature)
    assert all(abs(chosen[code] - expected[code]) < 1 + 1e-6 for code in counts)
    ties = [dict.fromkeys(codes, 100) for codes in ("abc", "cab")]
    assert quotas(ties[0], total // 9, 1) == quotas(ties[1], total // 9, 1)


# --- the sample

PAIRS = [("de", "en", range(600)), ("en", "ja", range(600, 900))]  # and the number of each line


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return [
        write_lines(folder / f"{one}-{other}.tsv", (f"{one}{n}\t{other}{n}\t{n}" for n in numbers))
        for one, other, numbers in PAIRS
    ]


def sample(folder, sources, name="sample.txt", seed=1, sample_lines=500):
    settings = {"sample_lines": sample_lines, "temperature": 2}
    experiment = of_languages(*LANGUAGES, seed=seed, vocabulary=settings)
    quota = subwords.write_sample(experiment, sources, folder / name)
    return quota, (folder / name).read_text(encoding="utf-8").splitlines()


def test_a_sample_has_the_quota_of_each_language_and_depends_on_the_seed(tmp_path, sources):
    quota, lines = sample(tmp_path, sources)
    assert quota == quotas({"de": 600, "en": 900, "ja": 300}, 500, 2)
    assert Counter(line[:2] for line in lines) == quota
    rows = [row[:2] for path in sources for row in read_tsv(path)]
    assert not Counter(lines) - Counter(chain(*rows))  # each once
    english = [int(line[2:]) for line in lines if line.startswith("en")]
    # 600 of its 900 lines are aligned with German; one sigma of the share is 0.03
    assert 0.5 < sum(number < 600 for number in english) / len(english) < 0.83
    assert sample(tmp_path, sources, "b.txt") == (quota, lines)
    again, others = sample(tmp_path, sources, "c.txt", seed=2)
    assert again == quota
    assert others != lines
    quota, lines = sample(tmp_path, sources, "d.txt", sample_lines=10_000)  # all there is
    assert quota == {"de": 600, "en": 900, "ja": 300}
    assert len(lines) == 1800


# --- the model

PLAIN = {code: " ".join(lexicon(code)[:6]) for code in ("en", "de")}
HAN, RARE = "猫は今日も小さな鳥をあそこで見る", "山川海空星雲"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A sample of three languages with the language of each line."""
    sample, draw = tmp_path_factory.mktemp("mixed") / "sample.txt", random.Random(5)
    words = {**{code: lexicon(code) for code in PLAIN}, "ja": WORDS["ja"]}
    lines = [(code, " ".join(draw.choices(words[code], k=5))) for code in [*words] * 150]
    lines += [("ja", "".join(draw.choices(HAN, k=12))) for _ in range(100)] + [("ja", RARE)]
    write_lines(languages_of(sample), (code for code, _ in lines))
    return write_lines(sample, (text for _, text in lines))


def labelled(sample):
    """(language, text) of each line."""
    lines = (path.read_text("utf-8").splitlines() for path in (languages_of(sample), sample))
    return list(zip(*lines, strict=True))


def of(sample, tmp_path, **settings):
    settings = {"size": 120, "character_coverage": 1.0, **settings}
    out = tmp_path / "v.model"
    subwords.train_vocabulary(of_languages(*LANGUAGES, vocabulary=settings), sample, out)
    return load_vocabulary(out)


def test_the_same_sample_gives_the_same_model_bytes(mixed, tmp_path):
    first, again = (of(mixed, tmp_path).serialized_model_proto() for _ in range(2))
    assert first == again


def test_a_sample_truncated_during_training_gives_no_model(mixed, tmp_path, monkeypatch):
    copy, one = tmp_path / "sample.txt", SentencePieceTrainer.train
    copy.write_bytes(mixed.read_bytes())

    def train_and_cut(**options):
        one(**options)
        os.truncate(copy, copy.stat().st_size // 2)

    monkeypatch.setattr(SentencePieceTrainer, "train", train_and_cut)
    assert one_line(of, copy, tmp_path).startswith(f"{copy}: it changed while it was read")
    assert list(tmp_path.iterdir()) == [copy]


def test_ids_begin_with_pad_unk_mask_and_the_languages(mixed, tmp_path):
    vocabulary = of(mixed, tmp_path)
    assert (subwords.PAD, UNK, subwords.MASK) == (0, 1, 2)
    first = ["<pad>", "<unk>", "<mask>", "<2en>", "<2de>", "<2ja>"]
    assert [vocabulary.id_to_piece(at) for at in range(6)] == first
    ids = [vocabulary.pad_id(), vocabulary.unk_id(), vocabulary.bos_id(), vocabulary.eos_id()]
    assert ids == [0, 1, -1, -1]
    assert vocabulary.get_piece_size() == 120
    text = "<2en> a <2de> b <mask> <pad> x<2ja> <unk>"
    assert not {0, 2, 3, 4, 5} & {*vocabulary.encode(text)}, "text became a control symbol"


def test_too_large_a_vocabulary_is_an_error_and_no_file(mixed, tmp_path):
    message = one_line(of, mixed, tmp_path, size=5_000)
    assert message.startswith("vocabulary.size: SentencePiece cannot make 5,000 pieces")
    assert "Lower vocabulary.size or raise vocabulary.sample_lines" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_chosen_languages_are_split_into_characters(kind, mixed, tmp_path):
    vocabulary = of(mixed, tmp_path, type=kind, characters=["ja"])
    for text in (HAN, "小さな 鳥 は", "a 猫"):
        (ids,) = encode_lines(vocabulary, [text], "ja")
        assert [vocabulary.id_to_piece(at) for at in ids] == list(text.replace(" ", "▁"))
        assert vocabulary.decode(ids) == text
    for code, text in PLAIN.items():
        (ids,) = encode_lines(vocabulary, [text], code)
        assert ids == vocabulary.encode(text)
        assert len(ids) < len(text) / 2, "no pieces were learnt"
        assert vocabulary.decode(ids) == text
    for made, count in ((vocabulary, 0), (of(mixed, tmp_path, type=kind), 1)):
        pieces = [made.id_to_piece(at) for at in range(made.get_piece_size())]
        longer = [piece for piece in pieces if len(piece) > 1 and set(piece) & set(HAN)]
        assert bool(longer) == count, "pieces of several characters"
        assert count or set(HAN) <= set(pieces)


def test_a_rare_character_of_a_chosen_language_is_unknown_or_bytes(mixed, tmp_path):
    (ids,) = encode_lines(of(mixed, tmp_path, characters=["ja"]), ["猫龍鳥"], "ja")
    assert ids[1] == UNK != ids[0] != ids[2]
    vocabulary = of(mixed, tmp_path, characters=["ja"], byte_fallback=True, size=360)
    (ids,) = encode_lines(vocabulary, ["猫龍鳥"], "ja")
    assert UNK not in ids
    assert len(ids) == 2 + len("龍".encode())
    assert vocabulary.decode(ids) == "猫龍鳥"
    report = write_vocabulary_report(tmp_path / "v.model", mixed, tmp_path / "r.json")
    assert report["scripts"]["bytes"] == 256
    assert not any(row["unknown"] for row in report["languages"].values())


def test_the_least_coverage_is_the_least_that_sentencepiece_takes(mixed, tmp_path):
    settings = SCHEMAS["experiment"]["$defs"]["VocabularySettings"]["properties"]
    least = settings["character_coverage"]["minimum"]
    of(mixed, tmp_path, character_coverage=least)
    model = {"input": str(mixed), "model_prefix": str(tmp_path / "refused"), "vocab_size": 60}
    with pytest.raises(RuntimeError):
        SentencePieceTrainer.train(character_coverage=least - 0.001, **model)


@pytest.mark.parametrize("coverage", [0.98, 0.999])
def test_the_most_frequent_characters_have_a_piece_up_to_the_coverage(coverage, mixed, tmp_path):
    """They are counted in the lines of the chosen language alone."""
    vocabulary = of(mixed, tmp_path, characters=["ja"], character_coverage=coverage)
    text = "".join(line for code, line in labelled(mixed) if code == "ja")
    counts = sorted(Counter(text.replace(" ", "")).items(), key=lambda item: (-item[1], item[0]))
    known = [letter for letter, _ in counts if vocabulary.piece_to_id(letter) != UNK]
    assert known == [letter for letter, _ in counts][: len(known)]
    shares = [sum(n for _, n in counts[:k]) / sum(n for _, n in counts) for k in range(60)]
    assert shares[len(known) - 1] < coverage <= shares[len(known)]
    assert len(known) < len(counts)


NASTY = ["", " ", "  the  cat ", "the\u00a0cat \u00a0 \u3000today\u3000", "the \u0301 cat \u0308a"]
NASTY += ["\u2581 the\u2581cat \u2581today the\u2581", "\u200bthe \ufeff cat\u200d \u00ad"]
NASTY += ["\u00a8 \u0385 ﬁ ½ ㍿ ㌔ ｶﾞ ①", "𠮷𠮷 𠮷 x𠮷𠮷y ☃☃ 😀 < > <mask> <2en> <pad>"]
NASTY += ["\x00 \x01a \x7f", "x" * 5_000, "猫は 今日も小さな鳥を", "the the the cat cat"]


BY_WORDS = [({}, ["en", "ja"]), ({"type": "unigram"}, []), ({"characters": ["ja"]}, ["en"])]


@pytest.mark.parametrize("kept", [subwords.KEPT, 3])
@pytest.mark.parametrize(("settings", "by_words"), BY_WORDS)
def test_encoding_word_by_word_equals_encoding_the_line(
    kept, settings, by_words, mixed, tmp_path, monkeypatch
):
    monkeypatch.setattr(subwords, "KEPT", kept)
    vocabulary, draw = of(mixed, tmp_path, **settings), random.Random(4)
    lines = [*NASTY, *mixed.read_text(encoding="utf-8").splitlines()]
    lines += ["".join(draw.choices("".join(NASTY[1:10]), k=30)) for _ in range(1_000)]
    for code in ("en", "ja"):
        encoder = WordEncoder(vocabulary, code)
        assert encoder.by_words == (code in by_words)
        packed = chain(*(encoder.encode(tuple(batch)) for batch in batched(lines, len, 100)))
        expected = encode_lines(vocabulary, lines, code)
        assert [list(memoryview(ids).cast("H")) for ids in packed] == expected


def test_a_vocabulary_with_pieces_across_spaces_encodes_whole_lines():
    class Across:
        get_piece_size = staticmethod(lambda: 2)
        id_to_piece = staticmethod(lambda ids: ["\u2581a", "\u2581a\u2581b"])

        def encode(self, lines, num_threads):
            return [[1] if line == "a b" else [0] for line in lines]

    assert WordEncoder(Across()).encode(("a", "a b")) == [b"\0\0", b"\1\0"]


# --- the report


@pytest.fixture
def reported(mixed, tmp_path):
    """A vocabulary in which rare characters have no piece, and its report."""
    of(mixed, tmp_path, size=150, character_coverage=0.99)
    report = write_vocabulary_report(tmp_path / "v.model", mixed, tmp_path / "r.json")
    return tmp_path / "v.model", report


def test_the_report_equals_a_loop_over_the_sample(mixed, reported, tmp_path, monkeypatch):
    model, report = reported
    assert json.loads((tmp_path / "r.json").read_text()) == report
    vocabulary, expected = load_vocabulary(model), {}
    for code, text in labelled(mixed):
        row = expected.setdefault(code, dict.fromkeys(vocabulary_report.COUNTS, 0))
        ids = vocabulary.encode(text)
        row["lines"] += 1
        row["characters"] += sum(not c.isspace() for c in text)
        row["tokens"] += len(ids)
        row["unknown"] += sum(token == UNK for token in ids)
    assert report["languages"] == expected
    assert expected["ja"]["unknown"] > 0 == expected["en"]["unknown"]
    assert report["pieces"] == 150 == sum(report["scripts"].values())
    assert report["scripts"]["control"] == 6
    assert {*report["scripts"]} == {"control", "Latin", "Hiragana", "Han", "other"}
    monkeypatch.setattr(vocabulary_report, "LINES", 50)
    report = write_vocabulary_report(model, mixed, tmp_path / "r.json")
    assert {row["lines"] for row in report["languages"].values()} == {50}


def test_a_report_of_other_labels_or_sums_is_an_error(mixed, reported, tmp_path):
    sample = tmp_path / "sample.txt"
    sample.write_bytes(mixed.read_bytes())
    languages_of(sample).write_text("en\n" * 99)
    message = one_line(write_vocabulary_report, reported[0], sample, tmp_path / "r.json")
    assert re.search(r"sample\.txt: 551 lines, but .*sample\.languages has 99", message)
    report = json.loads((tmp_path / "r.json").read_text())
    report["scripts"]["Latin"] += 1
    (tmp_path / "r.json").write_text(json.dumps(report))
    message = one_line(write_vocabulary_table, [tmp_path / "r.json"], tmp_path / "t.tex")
    assert "r.json: the scripts have 151 pieces, the vocabulary 150" in message


def test_a_piece_belongs_to_the_script_of_its_first_letter():
    scripts = {
        **{"▁the": "Latin", "—a": "Latin", "▁ы": "Cyrillic", "の": "Hiragana", "ー": "Katakana"},
        **{"中": "Han", "々": "Han", "हि": "Devanagari", "▁्": "Devanagari", "한": "Hangul"},
        **{"▁3.1": "other", "▁": "other"},
    }
    assert {piece: script_of(piece) for piece in scripts} == scripts


# --- tables


def test_the_table_of_vocabularies_is_golden(tmp_path):
    reports, counts = [], {"lines": 10, "characters": 100, "tokens": 20, "unknown": 1}
    languages = {c: counts | {"tokens": n} for c, n in (("en", 20), ("fr", 21), ("ja", 22))}
    for name, latin in (("one", 300), ("two", 200)):
        scripts = {"Latin": latin, "Han": 7, "control": 5, "other": 1}
        report = {"pieces": latin + 13, "scripts": scripts, "languages": languages}
        reports.append(write_lines(tmp_path / f"{name}.json", [json.dumps(report)]))
    write_vocabulary_table(reports, tmp_path / "v.tex")
    golden.check_table("vocabulary_two", tmp_path / "v.tex")
    write_vocabulary_table(reports[:1], tmp_path / "v.tex")
    golden.check_table("vocabulary", tmp_path / "v.tex")
