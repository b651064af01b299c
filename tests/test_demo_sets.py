"""Laws of the demo's evaluation sets: each is read by its reader; sizes, labels, translations."""

import json
import math
import re
import zipfile
from collections import Counter
from itertools import product, takewhile

import pytest
from text_made import law

from ems.config.plugins import benchmark, module
from ems.corpora.demo.mirror import demo_sets
from ems.corpora.demo.texts import Material, build
from ems.corpora.evalsets.formats import Subset
from ems.corpora.moses import read_pairs
from ems.corpora.split import read_documents

bucc2018, counterfactual, flores200, marc, ntrex = (
    module(name, "data") for name in ("bucc2018", "counterfactual", "flores200", "marc", "ntrex")
)
paracrawl, pawsx, rcv2, tatoeba, xnli, xsimpp = (
    module(name, "data") for name in ("paracrawl", "pawsx", "rcv2", "tatoeba", "xnli", "xsimpp")
)
XNLI = ["ar", "de", "en", "es", "fr", "ru", "zh"]
PAWSX = ["de", "en", "es", "fr", "ja", "zh"]
BUCC = ["de", "fr", "ru", "zh"]
FLORES = ["eng_Latn", "deu_Latn", "fra_Latn", "spa_Latn"]
FLORES += ["rus_Cyrl", "zho_Hans", "jpn_Jpan", "arb_Arab"]
DOMAINS = ("books", "dvd", "music")
REUTERS = ["english", "german", "spanish", "french", "japanese", "russian", "chinese"]
LABELLED = {  # set -> its languages, its domains, examples of each class in each part
    "sib200": (FLORES, ("",), {"train": 30, "valid": 10, "test": 20}),
    "cls": (["en", "de", "fr", "jp"], DOMAINS, {"train": 50, "test": 50}),
    "marc": (PAWSX, ("",), {"train": 80, "valid": 24, "test": 48}),
    "mldoc": (REUTERS, ("",), {"train": 20, "valid": 10, "test": 20}),
    "counterfactual": (["EN", "DE", "JP"], ("",), {"train": 60, "valid": 20, "test": 50}),
}


root = pytest.fixture(scope="module", name="root")(lambda demo_mirror: demo_mirror)


def read(root, name, code, part, domain=""):
    """The documents of one part of a set of classification."""
    folder = root / (benchmark(name).demo or name)
    place = Subset(code, domain, part)
    return list(module(name, "data").read_part(folder, place, 80)[1])


# --- each set by its reader


def test_flores_is_the_first_sentences_of_tatoeba_in_every_language(root):
    sentences = [flores200.read_language(root / "flores200", code) for code in FLORES]
    assert [len(lines) for lines in sentences] == [200] * 8
    german, english = tatoeba.read_language(root / "tatoeba", "deu")
    assert (sentences[0], sentences[1]) == (english[:200], german[:200])


def same(one, other):
    """The number of words at the start of both sentences that are the same."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False)))


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
        assert same(one, other) + same(one[::-1], other[::-1]) > 0, negative


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


@pytest.fixture(scope="module")
def translations():
    """(language, sentence) -> English, of all that is drawn for BUCC, made a second time."""
    known = {}

    class Noted(Material):
        def any(self, count):
            drawn = super().any(count)
            for sentence in drawn:
                for language, text in sentence.texts.items():
                    known[language, text] = sentence.texts["en"]
            return drawn

    material = Noted(**vars(build()))
    for name in takewhile(lambda name: name != "paracrawl", demo_sets().values()):
        module(name, "demo").made(material)
    return known


@pytest.mark.parametrize("code", BUCC)
@pytest.mark.parametrize(("part", "pairs", "alone"), [("sample", 40, 60), ("training", 100, 200)])
def test_bucc_hides_its_translations_among_sentences_of_either_side_alone(
    root, translations, code, part, pairs, alone
):
    part_read = bucc2018.read_part(root / "bucc2018", code, part)
    assert len(part_read.sentences) == len(part_read.english) == pairs + alone
    assert len(part_read.gold) == pairs
    assert (
        len(set(part_read.sentences.values()))
        == len(set(part_read.english.values()))
        == pairs + alone
    )
    first, second = zip(*part_read.gold, strict=True)
    assert (len(set(first)), len(set(second))) == (pairs, pairs)
    ids = {sentence: name for name, sentence in part_read.english.items()}
    english = {name: translations[code, text] for name, text in part_read.sentences.items()}
    true = {(name, ids[text]) for name, text in english.items() if text in ids}
    assert true == set(part_read.gold)


def check_inferences(pairs, premises):
    assert Counter(pair.label for pair in pairs) == dict.fromkeys(xnli.LABELS, premises)
    assert Counter(Counter(pair.premise for pair in pairs).values()) == {3: premises}
    for pair in pairs:
        inside = pair.hypothesis in pair.premise
        assert inside == (pair.label == "entailment"), pair


def test_xnli_has_each_label_alike_and_each_premise_with_all_three(root):
    for code in XNLI:
        check_inferences(xnli.read_split(root / "xnli", code, "dev"), 50)
        check_inferences(xnli.read_split(root / "xnli", code, "test"), 100)
    check_inferences(list(xnli.read_train(root / "xnli")), 400)
    assert "\tcontradictory\n" in (root / "xnli" / xnli.TRAIN).read_text()  # as published


@pytest.mark.parametrize("code", PAWSX)
def test_pawsx_has_either_label_alike_and_only_paraphrases_have_the_same_letters(root, code):
    """Another order of words changes at most a letter or two ("は" in Japanese)."""
    for split, count in (("dev", 120), ("test", 200)):
        pairs = pawsx.read_split(root / "pawsx", code, split)
        assert Counter(pair.label for pair in pairs) == {"0": count // 2, "1": count // 2}
        assert not any(law(pair.first) == law(pair.second) for pair in pairs)
    hits = 0
    for pair in pairs:
        one, other = (Counter(law(text)) for text in (pair.first, pair.second))
        different = sum(((one - other) + (other - one)).values())
        hits += (different <= 2) == (pair.label == "1")
    assert hits >= 0.9 * len(pairs) or code == "fr"


@pytest.mark.parametrize("name", LABELLED)
def test_each_part_has_each_class_alike(root, name):
    codes, domains, parts = LABELLED[name]
    for part, each in parts.items():
        expected = dict.fromkeys(module(name, "data").CLASSES, each)
        expected |= {"": each // 2} if name == "marc" else {}  # three stars
        for domain in domains:
            labels = [[d.label for d in read(root, name, code, part, domain)] for code in codes]
            assert all(Counter(of_code) == expected for of_code in labels)
            alike = {tuple(of_code) for of_code in labels}  # the same ones in every language
            assert (len(alike) == 1) == (name != "mldoc")


def test_reviews_have_a_title_and_a_text_and_each_number_of_stars_alike(root):
    for name in ("cls", "marc"):
        codes, domains, parts = LABELLED[name]
        for place in product(codes, parts, domains):
            assert all(document.title and document.text for document in read(root, name, *place))
    for code, (split, each) in product(PAWSX, {"train": 40, "dev": 12, "test": 24}.items()):
        lines = (root / "marc" / marc.file_name(code, split)).read_text("utf-8").splitlines()
        assert Counter(json.loads(line)["stars"] for line in lines) == dict.fromkeys("12345", each)


@pytest.mark.parametrize("code", REUTERS)
def test_some_news_to_test_on_are_long_and_rcv2_has_the_same_items(root, code):
    headlines = []
    for part in ("train", "valid", "test"):
        items = read(root, "mldoc", code, part)
        headlines += [document.title for document in items]
        long = sum(document.text.count("\n") >= 15 for document in items)
        assert long == (4 if part == "test" else 0)
    titles = list(rcv2.read_titles(root / "reuters", code))
    assert sorted(document.title for document in titles) == sorted(headlines)
    assert Counter(document.label for document in titles) == dict.fromkeys(rcv2.CLASSES, 50)


COUNTERFACTUAL = {  # what a sentence of what was not the case says, and no other one
    "EN": r"^If .* had had .* would have|\bwishes\b|would have been better|\bwould\b.*\bif\b",
    "DE": r"^Wenn .*hätte, hätte|wünscht sich|hätte .* sollen|\b(?:würde|wäre) .*, wenn\b",
    "JP": "のに。$|ばよかったと|べきでした。$",
}


@pytest.mark.parametrize("code", COUNTERFACTUAL)
def test_words_tell_what_was_not_the_case_and_no_sentence_is_in_two_parts(root, code):
    said, texts = re.compile(COUNTERFACTUAL[code]), []
    for split in counterfactual.SPLITS:
        for document in counterfactual.read_split(root / "counterfactual", code, split):
            assert bool(said.search(document.text)) == (document.label == "1"), document
            texts.append(law(document.text))
    assert len(set(texts)) == len(texts)


# --- labels can be learnt


def grams(text):
    folded = law(text)
    return [folded[at : at + n] for n in (2, 3) for at in range(len(folded) - n + 1)]


def learnt(train, test):
    """Accuracy of naive Bayes on letter bigrams and trigrams; examples are (label, text)."""
    counts, labels = {}, Counter()
    for label, text in train:
        counts.setdefault(label, Counter()).update(grams(text))
        labels[label] += 1
    known = set().union(*counts.values())
    totals = {label: sum(by_word.values()) + len(known) for label, by_word in counts.items()}

    def likelihood(label, text):
        inside = [gram for gram in grams(text) if gram in known]
        return sum(math.log((counts[label][gram] + 1) / totals[label]) for gram in inside)

    hits = [max(labels, key=lambda x: likelihood(x, text)) == label for label, text in test]
    return sum(hits) / len(test)


@pytest.mark.parametrize(
    ("name", "codes", "domains", "least"),
    [
        ("sib200", ["eng_Latn", "jpn_Jpan", "arb_Arab"], ("",), 0.7),
        ("cls", ["en", "de", "jp"], DOMAINS, 0.8),
        ("marc", ["en", "zh"], ("",), 0.8),
        ("counterfactual", ["EN", "DE", "JP"], ("",), 0.9),
        ("mldoc", ["english", "russian", "chinese"], ("",), 0.8),
    ],
)
def test_the_class_can_be_learnt_from_the_text(root, name, codes, domains, least):
    for code in codes:
        for domain in domains:
            train, test = (read(root, name, code, part, domain) for part in ("train", "test"))
            examples = [
                [(d.label, f"{d.title}\n{d.text}") for d in part if d.label]
                for part in (train, test)
            ]
            assert learnt(*examples) > least
            if name == "mldoc":  # from the headline alone, too
                assert learnt(*([(d.label, d.title) for d in part] for part in (train, test))) > 0.6
