"""Laws of the demo's evaluation sets: sizes and labels, what training has seen, the experiment."""

import re
import zipfile
from collections import Counter
from itertools import combinations, product

import pytest
from experiments_made import MINIMAL, Settings, shipped
from text_made import law

from ems.bench.task import Task
from ems.config.experiment import UNSEEN
from ems.config.plugins import benchmark, benchmarks, has, module, sets
from ems.config.stages import stage_hash
from ems.corpora.demo.grammar import BENCHMARK_ONLY, LANGUAGES
from ems.corpora.evalsets.formats import Subset, parts
from ems.corpora.evalsets.sets import data_files, read_sides
from ems.corpora.moses import read_pairs
from ems.corpora.split import read_document_names
from ems.workflow.sources import missing_evalsets

bucc2018, counterfactual, flores200, marc, ntrex = (
    module(name, "data") for name in ("bucc2018", "counterfactual", "flores200", "marc", "ntrex")
)
paracrawl, pawsx, rcv2, tatoeba, xnli, xsimpp = (
    module(name, "data") for name in ("paracrawl", "pawsx", "rcv2", "tatoeba", "xnli", "xsimpp")
)
PLACES = {  # set -> its folder below the mirror's
    name: benchmark(name).demo or name for name in sets() if has(name, "demo")
} | {"tatoeba": "tatoeba"}
DRAWN = {name for name in sets() if benchmark(name).drawn}
PAWSX = ["de", "en", "es", "fr", "ja", "zh"]
FLORES = ["eng_Latn", "deu_Latn", "fra_Latn", "spa_Latn"]
FLORES += ["rus_Cyrl", "zho_Hans", "jpn_Jpan", "arb_Arab"]
REUTERS = ["english", "german", "spanish", "french", "japanese", "russian", "chinese"]
LABELLED = {  # set -> its languages, its domains, examples of each class in each part
    "sib200": (FLORES, ("",), {"train": 30, "valid": 10, "test": 20}),
    "cls": (["en", "de", "fr", "jp"], ("books", "dvd", "music"), {"train": 50, "test": 50}),
    "marc": (PAWSX, ("",), {"train": 80, "valid": 24, "test": 48}),
    "mldoc": (REUTERS, ("",), {"train": 20, "valid": 10, "test": 20}),
    "counterfactual": (["EN", "DE", "JP"], ("",), {"train": 60, "valid": 20, "test": 50}),
}

root = pytest.fixture(scope="module", name="root")(lambda demo_mirror: demo_mirror)


@pytest.fixture(scope="module")
def experiment():
    return shipped("demo")


def read(root, name, code, part, domain=""):
    """The documents of one part of a set of classification."""
    place = Subset(code, domain, part)
    return list(module(name, "data").read_part(root / PLACES[name], place, 80)[1])


# --- sizes and labels


def test_flores_is_the_first_sentences_of_tatoeba_in_every_language(root):
    sentences = [flores200.read_language(root / "flores200", code) for code in FLORES]
    assert [len(lines) for lines in sentences] == [200] * 8
    german, english = tatoeba.read_language(root / "tatoeba", "deu")
    assert (sentences[0], sentences[1]) == (english[:200], german[:200])


def test_each_sentence_of_flores_has_three_made_ones_in_xsimpp(root):
    made = xsimpp.read_negatives(root / "xsimpp")
    each = Counter(negative.source for negative in made)
    assert set(each) <= set(flores200.read_language(root / "flores200", "eng_Latn"))
    assert set(each.values()) == {3}
    assert len(each) > 170  # free sentences have none
    assert len({negative.sentence for negative in made}) == len(made)
    kinds = Counter(negative.kind for negative in made)
    assert set(kinds) == {"entity_replacement", "number_replacement", "causality_alternation"}
    assert min(kinds.values()) >= 20


def test_ntrex_has_the_same_english_in_each_language_and_a_document_for_each_line(root):
    documents = read_document_names(root / "ntrex" / "DOCUMENT_IDS.tsv")
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
    for pairs in (crawled, list(read_pairs(archive, "Europarl", pair))):
        assert len(pairs) == 400
        assert all(len({law(pair[side]) for pair in pairs}) == 400 for side in (0, 1))
    with zipfile.ZipFile(archive) as opened:
        assert f"Europarl.{pair}.xml" in opened.namelist()


@pytest.mark.parametrize("code", ["de", "fr", "ru", "zh"])
@pytest.mark.parametrize(("part", "pairs", "alone"), [("sample", 40, 60), ("training", 100, 200)])
def test_bucc_hides_its_translations_among_sentences_of_either_side_alone(
    root, code, part, pairs, alone
):
    whole = bucc2018.read_part(root / "bucc2018", code, part)
    for side in (whole.sentences, whole.english):
        assert len(side) == len(set(side.values())) == pairs + alone
    first, second = zip(*whole.gold, strict=True)
    assert len(whole.gold) == len(set(first)) == len(set(second)) == pairs
    assert set(first) <= set(whole.sentences)
    assert set(second) <= set(whole.english)


def test_xnli_has_each_premise_with_all_three_labels(root):
    parts_of = {
        (code, split): list(xnli.read_split(root / "xnli", code, split))
        for code, split in product(["ar", "de", "en", "es", "fr", "ru", "zh"], ("dev", "test"))
    }
    for pairs in (*parts_of.values(), list(xnli.read_train(root / "xnli"))):
        premises = len({pair.premise for pair in pairs})
        assert Counter(pair.label for pair in pairs) == dict.fromkeys(xnli.LABELS, premises)
        assert len({(pair.premise, pair.label) for pair in pairs}) == len(pairs) == 3 * premises
        for pair in pairs:
            assert (pair.hypothesis in pair.premise) == (pair.label == "entailment"), pair


@pytest.mark.parametrize(("code", "split"), [*product(PAWSX, ("dev", "test"))])
def test_pawsx_has_either_label_alike_and_never_the_same_sentence_twice(root, code, split):
    pairs = pawsx.read_split(root / "pawsx", code, split)
    half = {"dev": 60, "test": 100}[split]
    assert Counter(pair.label for pair in pairs) == {"0": half, "1": half}
    assert not any(law(pair.first) == law(pair.second) for pair in pairs)


@pytest.mark.parametrize("name", LABELLED)
def test_each_part_has_each_class_alike(root, name):
    codes, domains, sizes = LABELLED[name]
    for part, each in sizes.items():
        expected = dict.fromkeys(module(name, "data").CLASSES, each)
        expected |= {"": each // 2} if name == "marc" else {}  # three stars
        for domain in domains:
            labels = [[d.label for d in read(root, name, code, part, domain)] for code in codes]
            assert all(Counter(of_code) == expected for of_code in labels)
            alike = {tuple(of_code) for of_code in labels}  # the same ones in every language
            assert (len(alike) == 1) == (name != "mldoc")


@pytest.mark.parametrize("code", REUTERS)
def test_some_news_to_test_on_are_long_and_rcv2_has_the_same_items(root, code):
    headlines = []
    for part in ("train", "valid", "test"):
        items = read(root, "mldoc", code, part)
        headlines += [document.title for document in items]
        long = sum(document.text.count("\n") >= 15 for document in items)
        assert long == (4 if part == "test" else 0)
    titles = [document.title for document in rcv2.read_titles(root / "reuters", code)]
    assert sorted(titles) == sorted(headlines)


COUNTERFACTUAL = {  # what a sentence of what was not the case says, and no other one
    "EN": r"^If .* had had .* would have|\bwishes\b|would have been better|\bwould\b.*\bif\b",
    "DE": r"^Wenn .*hätte, hätte|wünscht sich|hätte .* sollen|\b(?:würde|wäre) .*, wenn\b",
    "JP": "のに。$|ばよかったと|べきでした。$",
}


@pytest.mark.parametrize("code", COUNTERFACTUAL)
def test_words_tell_what_was_not_the_case(root, code):
    said = re.compile(COUNTERFACTUAL[code])
    for part in ("train", "valid", "test"):
        for document in read(root, "counterfactual", code, part):
            assert bool(said.search(document.text)) == (document.label == "1"), document


# --- what training has seen


@pytest.fixture(scope="module")
def trained(root):
    """The keys of every sentence of training and validation."""
    keys = set()
    for path in sorted((root / "opus").rglob("*.zip")):
        corpus, pair = path.parents[2].name, path.name.removesuffix(".txt.zip")
        for sides in read_pairs(path, corpus, pair):
            keys.update(map(law, sides))
    return keys


@pytest.fixture(scope="module")
def evaluated(root, experiment):
    """The keys of what decontamination takes of each set."""
    return {
        name: {
            law(text)
            for code in evalset.languages
            for side in read_sides(experiment, name, root / PLACES[name], code)
            for text in side
        }
        for name, evalset in experiment.evalsets.items()
        if name not in DRAWN
    }


def test_no_sentence_of_a_set_is_trained_on_beyond_the_planted_leak(trained, evaluated):
    assert set(evaluated) == set(sets()) & set(PLACES) - DRAWN
    leaked = {name: keys & trained for name, keys in evaluated.items() if keys & trained}
    assert set(leaked) == {"tatoeba", "flores200"}
    assert leaked["flores200"] < leaked["tatoeba"]


def test_nothing_that_only_trains_a_classifier_is_trained_on_or_scored(root, trained, evaluated):
    pairs = xnli.read_train(root / "xnli")
    texts = [text for pair in pairs for text in (pair.premise, pair.hypothesis)]
    for code in ("de", "en", "es", "fr", "ja", "zh"):
        texts += parts(marc.read_split(root / "marc", code, "train"))
    for code in ("EN", "DE", "JP"):
        texts += parts(counterfactual.read_split(root / "counterfactual", code, "train"))
    for code in ("de", "fr", "es"):
        for pair in paracrawl.read_language(root / "paracrawl", code, "ParaCrawl"):
            texts += pair
    keys = set(map(law, texts))
    assert not keys & trained
    assert not any(keys & held_out for held_out in evaluated.values())


def test_no_sentence_is_in_two_sets_but_those_of_flores_and_of_reuters(evaluated):
    both = combinations(sorted(evaluated), 2)
    shared = {pair for pair in both if evaluated[pair[0]] & evaluated[pair[1]]}
    assert shared == {("flores200", "tatoeba"), ("mldoc", "rcv2")}


# --- the experiment


def test_every_set_of_the_demo_is_embedded_and_its_files_are_there(root, experiment):
    assert set(experiment.evalsets) == set(sets()) & set(PLACES)
    assert missing_evalsets(experiment) == []
    for name, evalset in experiment.evalsets.items():
        assert evalset.embedded == (name != "tatoeba")
        unseen = BENCHMARK_ONLY if name == "tatoeba" else ()
        assert set(evalset.languages.values()) - set(LANGUAGES) == set(unseen)
        files = data_files(experiment, name, root / PLACES[name])
        assert files
        assert all(path.exists() for path in files), name
    assert sum(path.stat().st_size for path in root.rglob("*.xml")) < 3_000_000  # news are small


def test_the_demo_has_every_benchmark_and_a_language_that_it_does_not_train_on(experiment):
    assert set(experiment.benchmarks) == set(benchmarks())
    assert experiment.spoken("tatoeba")["ita"] == UNSEEN
    assert all(experiment.scores_unseen("tatoeba", system) for system in experiment.systems)
    assert all("it" not in pair for corpus in experiment.corpora for pair in corpus.pairs)
    assert experiment.segmenters[UNSEEN] == experiment.segmenters["es"] == "sacremoses"


def test_the_full_demo_has_the_same_sets_and_benchmarks(experiment):
    full = shipped("demo-full")
    for key in ("evalsets", "decontaminate", "benchmarks", "probes"):
        assert getattr(full, key) == getattr(experiment, key)


def test_a_score_file_names_the_sum_of_the_files_themselves(root, experiment):
    header = Task(None, experiment, "ems", "tatoeba", {"tatoeba": root / "tatoeba"}).header()
    assert header["version"] == "demo-v1"
    assert len(data_files(experiment, "tatoeba", root / "tatoeba")) == 16
    assert len(header["data_sha256"]) == 16


def embedded(name, **entry):
    """An experiment with one embedded set."""
    return MINIMAL | {
        "languages": ["en", "de", "fr", "sw"],
        "sources": {name: "embedded"},
        "evalsets": {"tatoeba": {"version": "v1"}, name: {"version": "v1", **entry}},
    }


def test_a_language_that_the_demo_lacks_is_one_line_before_any_job(tmp_path):
    message = Settings(tmp_path).error(embedded("xnli"))
    assert "evalsets.xnli.languages: the embedded demo has only en, de, fr, es, ru" in message
    assert message.endswith("found sw")


def test_a_closed_set_may_be_embedded_and_a_copy_goes_before_it(tmp_path):
    project = Settings(tmp_path)
    evalset = project.load(embedded("mldoc")).evalsets["mldoc"]
    assert (evalset.embedded, evalset.path) == (True, "")
    message = project.error(embedded("mldoc", path=str(tmp_path / "gone")))
    assert "evalsets.mldoc.path" in message


def test_where_an_embedded_set_lies_changes_no_hash(tmp_path):
    project = Settings(tmp_path)
    value = embedded("sib200") | {"decontaminate": {"against": ["sib200"]}}
    value["languages"] = ["en", "de", "fr"]
    here = stage_hash(project.load(value), "evalkeys")
    assert stage_hash(project.load(value | {"sources": {"sib200": "x"}}), "evalkeys") == here


def test_the_workflow_makes_the_mirror_and_fetches_nothing_that_is_used_in_place(fresh):
    """`tiny` becomes the demo: thirteen sets in the mirror, and Tatoeba, fetched from it."""
    keys = "results/demo/text/evalkeys.tsv"
    words = ("-n", "--printshellcmds", "--config", "experiment=demo", "--", keys, "data")
    output = fresh.snakemake(*words)
    assert output.count("rule demo_mirror:") == 1
    fetched = re.findall(r"ems fetch-evalset --evalset (\w+) --source=(\w+)", output)
    assert set(fetched) == {("tatoeba", "embedded")}
    for place in ("flores200=data/embedded/flores200", "mldoc=data/embedded/reuters"):
        assert place in output
    assert "ParaCrawl" not in output
    assert "NTREX" not in output
