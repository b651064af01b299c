"""Laws of the vocabulary: the sample is fair and seeded, the model is the same bytes, its ids are
fixed."""

import os
import random
from collections import Counter

import pytest
from made.corpora import lexicon
from made.experiments import SCHEMAS, one_line
from made.shards import LANGUAGES, WORDS
from made.text import of_languages
from sentencepiece import SentencePieceTrainer

from ems.base.errors import EmsError
from ems.config.text import VocabularySettings, check_vocabulary
from ems.text import subwords
from ems.text.subwords import (
    UNK,
    WordEncoder,
    encode_lines,
    languages_of,
    load_vocabulary,
    quotas,
    train_vocabulary,
    write_sample,
)

# --- quotas


def own_shares(counts, total, temperature):
    """Shares by p_l ~ n_l^(1/T), where what a full language cannot take goes round again."""
    shares = dict.fromkeys(counts, 0.0)
    left = min(total, sum(counts.values()))
    while left > 1e-9:
        weights = {c: n ** (1 / temperature) for c, n in counts.items() if shares[c] < n - 1e-9}
        poured = {
            code: min(left * weight / sum(weights.values()), counts[code] - shares[code])
            for code, weight in weights.items()
        }
        for code, share in poured.items():
            shares[code] += share
        left -= sum(poured.values())
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


EXACT = [
    ({"en": 8_000, "de": 1_000, "sw": 1_000}, 1_000, 1, {"en": 800, "de": 100, "sw": 100}),
    ({"en": 8_000, "de": 1_000, "sw": 1_000}, 900, 1e9, {"en": 300, "de": 300, "sw": 300}),
    ({"en": 400, "de": 100}, 30, 2, {"en": 20, "de": 10}),
    ({"c": 100, "a": 100, "b": 100}, 100, 1, quotas({"a": 100, "b": 100, "c": 100}, 100, 1)),
]  # the share, all alike, between them, ties in whatever order


@pytest.mark.parametrize(("counts", "total", "temperature", "expected"), EXACT)
def test_a_quota_goes_from_the_share_to_all_alike_and_ties_know_no_order(
    counts, total, temperature, expected
):
    assert quotas(counts, total, temperature) == expected


# --- the sample

LINES = {"de-en": 600, "en-ja": 300}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Segmented pair files, every line with a number of its own."""
    folder, draw = tmp_path_factory.mktemp("pairs"), random.Random(1)
    paths = []
    for pair, count in LINES.items():
        path = folder / "C" / f"{pair}.tsv"
        path.parent.mkdir(exist_ok=True)
        rows = [
            [" ".join([f"{code}{at}", *draw.choices(WORDS[code], k=6)]) for code in pair.split("-")]
            for at in range(count)
        ]
        path.write_text("".join(f"{a}\t{b}\t{at}\n" for at, (a, b) in enumerate(rows)))
        paths.append(path)
    return paths


def experiment(seed=1, **vocabulary):
    settings = {"size": 400, "sample_lines": 500, "temperature": 2, "character_coverage": 1.0}
    return of_languages(*LANGUAGES, seed=seed, vocabulary={**settings, **vocabulary})


def sample(folder, sources, name="sample.txt", **settings):
    quota = write_sample(experiment(**settings), sources, folder / name)
    return quota, (folder / name).read_text(encoding="utf-8").splitlines()


def test_each_language_gives_its_quota_of_its_own_lines(tmp_path, sources):
    quota, lines = sample(tmp_path, sources)
    assert quota == quotas({"de": 600, "en": 900, "ja": 300}, 500, 2)
    assert Counter(line[:2] for line in lines) == quota
    every = Counter(
        side
        for path in sources
        for pair in path.read_text(encoding="utf-8").splitlines()
        for side in pair.split("\t")[:2]
    )
    assert not Counter(lines) - every  # drawn without replacement


def test_english_is_drawn_from_all_of_its_files(tmp_path, sources):
    pairs = [path.read_text(encoding="utf-8").splitlines() for path in sources]
    of_german = {line.split("\t")[1] for line in pairs[0]}
    _, lines = sample(tmp_path, sources)
    english = [line for line in lines if line.startswith("en")]
    # 600 of its 900 lines are beside German; one sigma of the share is 0.03
    assert 0.5 < sum(line in of_german for line in english) / len(english) < 0.83


def test_the_same_seed_draws_the_same_sample_and_another_another(tmp_path, sources):
    first = sample(tmp_path, sources, "a.txt")
    assert sample(tmp_path, sources, "b.txt") == first
    quota, lines = sample(tmp_path, sources, "c.txt", seed=2)
    assert quota == first[0]
    assert lines != first[1]


def test_a_sample_larger_than_the_corpus_is_the_corpus(tmp_path, sources):
    quota, lines = sample(tmp_path, sources, sample_lines=10_000)
    assert quota == {"de": 600, "en": 900, "ja": 300}
    assert len(lines) == 1800


# --- the model


@pytest.fixture(scope="module")
def trained(tmp_path_factory, sources):
    folder = tmp_path_factory.mktemp("vocabulary")
    write_sample(experiment(), sources, folder / "sample.txt")
    assert train_vocabulary(experiment(), folder / "sample.txt", folder / "1.model") == 400
    return folder


def test_the_same_sample_gives_the_same_model_bytes(trained, tmp_path):
    train_vocabulary(experiment(), trained / "sample.txt", tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (trained / "1.model").read_bytes()


def test_a_sample_that_is_cut_while_it_is_read_gives_no_model(trained, tmp_path, monkeypatch):
    copy, one = tmp_path / "sample.txt", SentencePieceTrainer.train
    copy.write_bytes((trained / "sample.txt").read_bytes())

    def train_and_cut(**options):
        one(**options)
        os.truncate(copy, copy.stat().st_size // 2)

    monkeypatch.setattr(SentencePieceTrainer, "train", train_and_cut)
    with pytest.raises(EmsError, match=f"{copy}: it changed while it was read"):
        train_vocabulary(experiment(), copy, tmp_path / "vocabulary.model")
    assert list(tmp_path.iterdir()) == [copy]


def test_ids_begin_with_pad_unk_mask_and_the_languages_in_their_order(trained):
    vocabulary = load_vocabulary(trained / "1.model")
    assert (subwords.PAD, UNK, subwords.MASK) == (0, 1, 2)
    first = ["<pad>", "<unk>", "<mask>", "<2en>", "<2de>", "<2ja>"]
    assert [vocabulary.id_to_piece(at) for at in range(6)] == first
    assert [vocabulary.pad_id(), vocabulary.unk_id()] == [0, 1]
    assert [vocabulary.bos_id(), vocabulary.eos_id()] == [-1, -1]
    assert vocabulary.get_piece_size() == 400


@pytest.mark.parametrize("text", ["<2en>", "a <2de> b", "<mask>", "<pad>", "x<2ja>", "<unk>"])
def test_text_never_becomes_a_control_symbol(trained, text):
    ids = load_vocabulary(trained / "1.model").encode(text)
    assert ids
    assert not {0, 2, 3, 4, 5} & set(ids)


def test_known_words_are_whole_and_come_back(trained):
    vocabulary = load_vocabulary(trained / "1.model")
    for words in WORDS.values():
        text = " ".join(words)
        ids = vocabulary.encode(text)
        assert UNK not in ids
        assert vocabulary.decode(ids) == text


@pytest.mark.parametrize("size", [5_000, 60_000])
def test_too_large_a_vocabulary_is_one_clear_error_and_no_file(trained, tmp_path, size):
    job = (experiment(size=size), trained / "sample.txt", tmp_path / "x.model")
    message = one_line(train_vocabulary, *job)
    assert message.startswith(f"vocabulary.size: SentencePiece cannot make {size:,} pieces")
    assert "Lower vocabulary.size or raise vocabulary.sample_lines" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no model"], ids=["empty", "text"])
def test_what_is_no_model_is_an_error_that_names_it(tmp_path, content):
    path = tmp_path / "x.model"
    with pytest.raises(EmsError, match=r"x\.model: no such file"):
        load_vocabulary(path)
    path.write_bytes(content)
    with pytest.raises(EmsError, match=r"x\.model: not a SentencePiece model"):
        load_vocabulary(path)


# --- single characters of some languages, and unigram models

PLAIN = {code: " ".join(lexicon(code)[:6]) for code in ("en", "de")}
HAN, RARE = "猫は今日も小さな鳥をあそこで見る", "山川海空星雲"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A sample of three languages with the language of each line."""
    sample, draw = tmp_path_factory.mktemp("mixed") / "sample.txt", random.Random(5)
    words = {**{code: lexicon(code) for code in PLAIN}, "ja": WORDS["ja"]}
    lines = [(code, " ".join(draw.choices(words[code], k=5))) for code in [*words] * 150]
    lines += [("ja", "".join(draw.choices(HAN, k=12))) for _ in range(100)] + [("ja", RARE)]
    sample.write_text("".join(f"{text}\n" for _, text in lines), encoding="utf-8")
    languages_of(sample).write_text("".join(f"{code}\n" for code, _ in lines))
    return sample


def of(sample, tmp_path, **settings):
    settings = {"size": 120, "character_coverage": 1.0, **settings}
    out = tmp_path / "v.model"
    train_vocabulary(of_languages(*LANGUAGES, vocabulary=settings), sample, out)
    return load_vocabulary(out)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_chosen_languages_are_single_characters_and_the_others_pieces(kind, mixed, tmp_path):
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


def test_pieces_of_chosen_languages_are_learnt_from_none_of_their_lines(mixed, tmp_path):
    vocabulary = of(mixed, tmp_path, characters=["ja"])
    pieces = [vocabulary.id_to_piece(at) for at in range(vocabulary.get_piece_size())]
    assert not [piece for piece in pieces if len(piece) > 1 and set(piece) & set(HAN)]
    assert set(HAN) <= set(pieces)
    shared = of(mixed, tmp_path)
    pieces = [shared.id_to_piece(at) for at in range(shared.get_piece_size())]
    assert [piece for piece in pieces if len(piece) > 1 and set(piece) & set(HAN)]


def test_a_rare_character_of_a_chosen_language_has_no_piece_or_bytes(mixed, tmp_path):
    (ids,) = encode_lines(of(mixed, tmp_path, characters=["ja"]), ["猫龍鳥"], "ja")
    assert ids[1] == UNK != ids[0] != ids[2]
    settings = {"characters": ["ja"], "byte_fallback": True, "size": 360}
    vocabulary = of(mixed, tmp_path, **settings)
    (ids,) = encode_lines(vocabulary, ["猫龍鳥"], "ja")
    assert UNK not in ids
    assert len(ids) == 2 + len("龍".encode())
    assert vocabulary.decode(ids) == "猫龍鳥"


def test_the_least_coverage_is_the_least_that_sentencepiece_takes(mixed, tmp_path):
    sections = SCHEMAS["experiment"]["$defs"]
    least = sections["VocabularySettings"]["properties"]["character_coverage"]
    of(mixed, tmp_path, character_coverage=least["minimum"])
    model = {"model_prefix": str(tmp_path / "refused"), "vocab_size": 60}
    with pytest.raises(RuntimeError):
        SentencePieceTrainer.train(
            input=str(mixed), character_coverage=least["minimum"] - 0.001, **model
        )


@pytest.mark.parametrize("coverage", [0.98, 0.999])
def test_the_characters_with_a_piece_are_the_most_frequent_up_to_the_coverage(
    coverage, mixed, tmp_path
):
    """Counted over the lines of the chosen language alone."""
    vocabulary = of(mixed, tmp_path, characters=["ja"], character_coverage=coverage)
    codes = languages_of(mixed).read_text().splitlines()
    lines = mixed.read_text(encoding="utf-8").splitlines()
    text = "".join(line for code, line in zip(codes, lines, strict=True) if code == "ja")
    counts = sorted(Counter(text.replace(" ", "")).items(), key=lambda item: (-item[1], item[0]))
    known = [letter for letter, _ in counts if vocabulary.piece_to_id(letter) != UNK]
    assert known == [letter for letter, _ in counts][: len(known)]
    shares = [sum(n for _, n in counts[:k]) / sum(n for _, n in counts) for k in range(60)]
    assert shares[len(known) - 1] < coverage <= shares[len(known)]
    assert len(known) < len(counts)


@pytest.mark.parametrize("settings", [{"type": "unigram"}, {"characters": ["ja"]}])
def test_words_one_by_one_give_the_ids_of_the_whole_line(settings, mixed, tmp_path):
    vocabulary = of(mixed, tmp_path, **settings)
    for code in LANGUAGES:
        lines = mixed.read_text(encoding="utf-8").splitlines()
        packed = WordEncoder(vocabulary, code).encode(tuple(lines))
        expected = encode_lines(vocabulary, lines, code)
        assert [list(memoryview(ids).cast("H")) for ids in packed] == expected


def test_without_a_language_left_to_learn_from_it_is_an_error():
    settings = VocabularySettings(size=500, characters=["en", "de"])
    message = one_line(lambda: check_vocabulary("vocabulary", settings, ["de", "en"]))
    assert message.startswith("vocabulary.characters: de, en are all of its languages")
