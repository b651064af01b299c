"""Laws of the demo's evaluation sets: each is read by its reader; sizes, labels, translations."""

import json
import math
import re
import zipfile
from collections import Counter

import pytest
from demo_made import law

import ems.benchmarks.bucc2018.data as bucc2018
import ems.benchmarks.cls.data as cls
import ems.benchmarks.counterfactual.data as counterfactual
import ems.benchmarks.flores200.data as flores200
import ems.benchmarks.marc.data as marc
import ems.benchmarks.mldoc.data as mldoc
import ems.benchmarks.ntrex.data as ntrex
import ems.benchmarks.paracrawl.data as paracrawl
import ems.benchmarks.pawsx.data as pawsx
import ems.benchmarks.rcv2.data as rcv2
import ems.benchmarks.sib200.data as sib200
import ems.benchmarks.tatoeba.data as tatoeba
import ems.benchmarks.xnli.data as xnli
import ems.benchmarks.xsimpp.data as xsimpp
from ems.benchmarks import module
from ems.corpora.demo.build import build
from ems.corpora.demo.material import Material
from ems.corpora.demo.sets import demo_sets
from ems.corpora.moses import read_pairs
from ems.corpora.split import read_documents

FLORES = [
    "eng_Latn",
    "deu_Latn",
    "fra_Latn",
    "spa_Latn",
    "rus_Cyrl",
    "zho_Hans",
    "jpn_Jpan",
    "arb_Arab",
]
XNLI = ["ar", "de", "en", "es", "fr", "ru", "zh"]
PAWSX = ["de", "en", "es", "fr", "ja", "zh"]
REUTERS = ["english", "german", "spanish", "french", "japanese", "russian", "chinese"]
CLASSES = {"CCAT", "ECAT", "GCAT", "MCAT"}


@pytest.fixture(scope="module")
def root(demo_mirror):
    return demo_mirror


# --- each set by its reader


def test_flores_is_the_first_sentences_of_tatoeba_in_every_language(root):
    found = [flores200.read_language(root / "flores200", code) for code in FLORES]
    assert [len(lines) for lines in found] == [200] * 8
    german, english = tatoeba.read_language(root / "tatoeba", "deu")
    assert (found[0], found[1]) == (english[:200], german[:200])


def test_each_made_sentence_of_xsimpp_differs_from_its_source_in_one_phrase(root):
    made = xsimpp.read_negatives(root / "xsimpp")
    english = flores200.read_language(root / "flores200", "eng_Latn")
    each = Counter(negative.source for negative in made)
    assert set(each) <= set(english)
    assert set(each.values()) == {3}
    assert len(each) > 170  # free sentences have none
    assert len({negative.sentence for negative in made}) == len(made)
    kinds = Counter(negative.kind for negative in made)
    assert set(kinds) == {"entity_replacement", "number_replacement", "causality_alternation"}
    assert min(kinds.values()) >= 20
    for negative in made:
        one, other = negative.sentence.split(), negative.source.split()
        start = sum(1 for _ in _same(one, other))
        end = sum(1 for _ in _same(one[::-1], other[::-1]))
        assert start + end > 0, negative


def _same(one, other):
    for a, b in zip(one, other, strict=False):
        if a != b:
            return
        yield a


def test_ntrex_has_the_same_english_in_each_language_and_a_document_for_each_line(root):
    documents = read_documents(root / "ntrex" / "DOCUMENT_IDS.tsv")
    assert set(Counter(documents).values()) == {10}
    english = set()
    for code in ("de", "fr", "es", "ru", "zh", "ja", "ar"):
        own, other = ntrex.read_language(root / "ntrex", code, None, "")
        assert len(own) == len(other) == len(documents) == 120
        english.add(tuple(other))
    assert len(english) == 1


@pytest.mark.parametrize("code", ["de", "fr", "es"])
def test_paracrawl_and_europarl_are_opus_zips_without_a_sentence_twice(root, code):
    crawled = list(paracrawl.read_language(root / "paracrawl", code, "ParaCrawl"))
    pair = "-".join(sorted(("en", code)))
    archive = root / "europarlxsr" / "moses" / f"{pair}.txt.zip"
    spoken = list(read_pairs(archive, "Europarl", pair))
    for pairs in (crawled, spoken):
        assert len(pairs) == 400
        assert all(len({law(pair[side]) for pair in pairs}) == 400 for side in (0, 1))
    with zipfile.ZipFile(archive) as opened:
        assert f"Europarl.{pair}.xml" in opened.namelist()


@pytest.mark.parametrize("code", ["de", "fr", "ru", "zh"])
@pytest.mark.parametrize(("part", "pairs", "alone"), [("sample", 40, 60), ("training", 100, 200)])
def test_bucc_hides_its_pairs_among_sentences_of_either_side_alone(root, code, part, pairs, alone):
    found = bucc2018.read_part(root / "bucc2018", code, part)
    assert len(found.sentences) == len(found.english) == pairs + alone
    assert len(found.gold) == pairs
    assert len(set(found.sentences.values())) == len(set(found.english.values())) == pairs + alone
    first, second = zip(*found.gold, strict=True)
    assert (len(set(first)), len(set(second))) == (pairs, pairs)


def test_the_gold_pairs_of_bucc_are_translations_and_no_other_pair_is(root, translations):
    for code in ("de", "fr", "ru", "zh"):
        for part in bucc2018.PARTS:
            found = bucc2018.read_part(root / "bucc2018", code, part)
            ids = {sentence: name for name, sentence in found.english.items()}
            true = {
                (name, ids[translations[code, sentence]])
                for name, sentence in found.sentences.items()
                if translations[code, sentence] in ids
            }
            assert true == set(found.gold)


@pytest.fixture(scope="module")
def translations():
    """(language, sentence) -> English, of all that is drawn for BUCC, made a second time."""
    known = {}

    class Noted(Material):
        def any(self, count):
            found = super().any(count)
            for sentence in found:
                for language, text in sentence.texts.items():
                    known[language, text] = sentence.texts["en"]
            return found

    material = Noted(build())
    for folder, name in demo_sets().items():
        module(name, "demo").made(material)
        if folder == "bucc2018":
            return known
    raise AssertionError("no BUCC")


def test_sib_has_all_seven_topics_alike_and_the_same_in_every_language(root):
    for split, each in (("train", 30), ("dev", 10), ("test", 20)):
        topics = set()
        for code in FLORES:
            found = sib200.read_split(root / "sib200" / code / f"{split}.tsv")
            counts = Counter(topic for topic, _ in found)
            assert (len(counts), set(counts.values())) == (7, {each})
            topics.add(tuple(topic for topic, _ in found))
        assert len(topics) == 1


@pytest.mark.parametrize("code", XNLI)
def test_xnli_has_each_label_alike_and_each_premise_with_all_three(root, code):
    for split, premises in (("dev", 50), ("test", 100)):
        found = xnli.read_split(root / "xnli", code, split)
        assert Counter(pair.label for pair in found) == dict.fromkeys(xnli.LABELS, premises)
        assert Counter(Counter(pair.premise for pair in found).values()) == {3: premises}
        _check_inferences(found)


def test_xnli_trains_on_english_with_the_old_spelling_of_contradiction(root):
    found = list(xnli.read_train(root / "xnli"))
    assert Counter(pair.label for pair in found) == dict.fromkeys(xnli.LABELS, 400)
    assert "\tcontradictory\n" in (root / "xnli" / xnli.TRAIN).read_text()
    _check_inferences(found)


def _check_inferences(pairs):
    for pair in pairs:
        inside = pair.hypothesis in pair.premise
        assert inside == (pair.label == "entailment"), pair


@pytest.mark.parametrize("code", PAWSX)
def test_pawsx_has_either_label_alike_and_never_the_same_order_of_words(root, code):
    for split, count in (("dev", 120), ("test", 200)):
        found = pawsx.read_split(root / "pawsx", code, split)
        assert Counter(pair.label for pair in found) == {"0": count // 2, "1": count // 2}
        assert not any(law(pair.first) == law(pair.second) for pair in found)


@pytest.mark.parametrize("code", ["de", "en", "es", "ja", "zh"])
def test_only_paraphrases_have_the_same_letters(root, code):
    """Another order of words changes at most a letter or two ("は" in Japanese)."""
    hits = 0
    pairs = pawsx.read_split(root / "pawsx", code, "test")
    for pair in pairs:
        one, other = (Counter(law(text)) for text in (pair.first, pair.second))
        different = sum(((one - other) + (other - one)).values())
        hits += (different <= 2) == (pair.label == "1")
    assert hits >= 0.9 * len(pairs)


@pytest.mark.parametrize("code", ["en", "de", "fr", "jp"])
def test_cls_has_either_class_alike_in_each_domain_and_split(root, code):
    for domain in cls.DOMAINS:
        for split in cls.SPLITS:
            found = list(cls.read_split(root / "cls", code, domain, split))
            assert Counter(d.label for d in found) == {"negative": 50, "positive": 50}
            assert all(document.title and document.text for document in found)


@pytest.mark.parametrize("code", ["de", "en", "es", "fr", "ja", "zh"])
def test_marc_has_each_number_of_stars_alike(root, code):
    for split, each in (("train", 40), ("dev", 12), ("test", 24)):
        found = list(marc.read_split(root / "marc", code, split))
        assert Counter(d.label for d in found) == {
            "negative": 2 * each,
            "": each,
            "positive": 2 * each,
        }
        lines = (root / "marc" / marc.file_name(code, split)).read_text("utf-8").splitlines()
        assert Counter(json.loads(line)["stars"] for line in lines) == dict.fromkeys("12345", each)


@pytest.mark.parametrize("code", REUTERS)
def test_mldoc_has_each_class_alike_and_rcv2_the_same_items(root, code):
    headlines = []
    for split, each in (("train.80", 20), ("dev", 10), ("test", 20)):
        found = list(mldoc.read_split(root / "reuters", code, split))
        assert Counter(d.label for d in found) == dict.fromkeys(CLASSES, each)
        headlines += [document.title for document in found]
        long = sum(document.text.count("\n") >= 15 for document in found)
        assert long == (4 if split == "test" else 0)
    titles = list(rcv2.read_titles(root / "reuters", code))
    assert sorted(document.title for document in titles) == sorted(headlines)
    assert Counter(document.label for document in titles) == dict.fromkeys(CLASSES, 50)


@pytest.mark.parametrize("code", ["EN", "DE", "JP"])
def test_counterfactual_has_either_class_alike_and_the_same_classes_in_each_language(root, code):
    seen, folder = set(), root / "counterfactual"
    for split, each in (("train", 60), ("valid", 20), ("test", 50)):
        found = counterfactual.read_split(folder, code, split)
        labels = [document.label for document in found]
        assert Counter(labels) == {"0": each, "1": each}
        assert labels == [d.label for d in counterfactual.read_split(folder, "EN", split)]
        texts = {law(document.text) for document in found}
        assert len(texts) == 2 * each
        assert seen.isdisjoint(texts)
        seen |= texts


COUNTERFACTUAL = {  # what a sentence of what was not the case says, and no other one
    "EN": r"^If .* had had .* would have|\bwishes\b|would have been better|\bwould\b.*\bif\b",
    "DE": r"^Wenn .*hätte, hätte|wünscht sich|hätte .* sollen|\b(?:würde|wäre) .*, wenn\b",
    "JP": "のに。$|ばよかったと|べきでした。$",
}


@pytest.mark.parametrize("code", COUNTERFACTUAL)
def test_words_tell_what_was_not_the_case_in_every_language(root, code):
    said = re.compile(COUNTERFACTUAL[code])
    for split in counterfactual.SPLITS:
        for document in counterfactual.read_split(root / "counterfactual", code, split):
            assert bool(said.search(document.text)) == (document.label == "1"), document


# --- labels can be learnt


def _grams(text):
    folded = law(text)
    return [folded[at : at + n] for n in (2, 3) for at in range(len(folded) - n + 1)]


def _learnt(train, test):
    """Accuracy of naive Bayes on letter bigrams and trigrams; examples are (label, text)."""
    counts, labels = {}, Counter()
    for label, text in train:
        counts.setdefault(label, Counter()).update(_grams(text))
        labels[label] += 1
    known = set().union(*counts.values())
    totals = {label: sum(found.values()) + len(known) for label, found in counts.items()}

    def guess(text):
        return max(
            labels,
            key=lambda label: sum(
                math.log((counts[label][gram] + 1) / totals[label])
                for gram in _grams(text)
                if gram in known
            ),
        )

    return sum(guess(text) == label for label, text in test) / len(test)


def _examples(documents):
    return [(d.label, f"{d.title}\n{d.text}") for d in documents if d.label]


@pytest.mark.parametrize("code", ["eng_Latn", "jpn_Jpan", "arb_Arab"])
def test_topics_can_be_learnt_from_the_text(root, code):
    train, test = (
        sib200.read_split(root / "sib200" / code / f"{x}.tsv") for x in ("train", "test")
    )
    assert _learnt(train, test) > 0.7


@pytest.mark.parametrize("code", ["en", "de", "jp"])
def test_the_class_of_a_review_can_be_learnt_from_the_text(root, code):
    for domain in cls.DOMAINS:
        train, test = (
            _examples(cls.read_split(root / "cls", code, domain, split)) for split in cls.SPLITS
        )
        assert _learnt(train, test) > 0.8


@pytest.mark.parametrize("code", ["en", "zh"])
def test_stars_can_be_learnt_from_the_text(root, code):
    train, test = (_examples(marc.read_split(root / "marc", code, x)) for x in ("train", "test"))
    assert _learnt(train, test) > 0.8


@pytest.mark.parametrize("code", ["EN", "DE", "JP"])
def test_what_was_not_the_case_can_be_learnt_from_the_text(root, code):
    train, test = (
        _examples(counterfactual.read_split(root / "counterfactual", code, split))
        for split in ("train", "test")
    )
    assert _learnt(train, test) > 0.9


@pytest.mark.parametrize("code", ["english", "russian", "chinese"])
def test_the_class_of_news_can_be_learnt_from_text_or_headline(root, code):
    train, test = (
        list(mldoc.read_split(root / "reuters", code, split)) for split in ("train.80", "test")
    )
    assert _learnt(_examples(train), _examples(test)) > 0.8
    titles = [[(d.label, d.title) for d in part] for part in (train, test)]
    assert _learnt(*titles) > 0.6
