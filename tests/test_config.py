"""Laws of a valid experiment: what its systems, corpora, parts and benchmarks are made of."""

import copy
import csv
from importlib.resources import files

import pytest
import yaml
from conftest import ROOT
from made import golden
from made.experiments import BASES, DIVIDED, REAL, SHIPPED, Settings, edited, shipped

from ems.base.errors import EmsError
from ems.base.schema import merge, plain
from ems.config.experiment import UNSEEN
from ems.config.load import load_site
from ems.corpora.catalogue import check_corpora


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, REAL)


@pytest.fixture
def divided(tmp_path):
    return Settings(tmp_path, DIVIDED)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_loads_and_knows_its_corpora(name):
    assert load_site(ROOT / "config.yaml").experiment in SHIPPED
    experiment = shipped(name)
    check_corpora(experiment)
    assert experiment.name == name
    assert experiment.systems
    assert all(corpus.pairs for _, corpus in experiment.all_corpora())


def test_nothing_of_one_experiment_leaks_into_another():
    read = shipped.__wrapped__  # not the experiments that the tests share
    texts = {}
    for name in SHIPPED:
        spoilt = read(name)
        texts[name] = str(spoilt)
        spoilt.systems.clear()
        spoilt.decontaminate.against.append("spoilt")
        spoilt.segmenters["en"] = "spoilt"
    assert {name: str(read(name)) for name in reversed(SHIPPED)} == texts


def test_a_system_is_the_base_plus_its_overrides(project):
    value = edited(REAL, "systems.b", {"model": {"layers": 1}, "train": {"steps": 0}})
    experiment = project.load(value)
    a, b, ngram = experiment.systems.values()
    assert a.model.layers == 6
    assert plain(b.model) == {**plain(a.model), "layers": 1}
    assert plain(b.train) == {**plain(a.train), "steps": 0}
    assert b.objectives == a.objectives
    assert (a.kind, ngram.kind) == ("encoder", "char-ngram")
    assert experiment.learning(["a", "ngram", "a"]) == ["a"]


def test_merging_leaves_its_inputs_unchanged():
    base = {"a": {"x": 1, "y": {"z": 2}}, "b": [1]}
    over = {"a": {"y": {"w": 3}}, "b": [2], "c": {"d": 4}}
    before = copy.deepcopy((base, over))
    assert merge(base, over) == {"a": {"x": 1, "y": {"z": 2, "w": 3}}, "b": [2], "c": {"d": 4}}
    assert (base, over) == before


def resolved(experiment):
    """The corpora, sets, vocabularies, systems, tables and segmenters, a line each."""

    def codes_of(narrowed):
        same = narrowed.languages == experiment.languages
        return "all languages" if same else " ".join(narrowed.languages)

    for role, corpus in experiment.all_corpora():
        words = []
        for pair in corpus.pairs:
            files = [f"{n} turned" if n in corpus.turned else n for n in corpus.files(pair)]
            words.append(pair if files == [pair] else f"{pair} ({', '.join(files)})")
            words[-1] += f" at most {corpus.cap(pair)}" if corpus.cap(pair) else ""
        source = "/".join(filter(None, (corpus.source, *map("+".join, corpus.paths.values()))))
        own = "your own, " if corpus.custom else ""
        yield f"{role} {corpus.label} {corpus.version} ({own}{source}): {', '.join(words)}"
    for name in experiment.evalsets:
        codes = experiment.spoken(name)
        few = ", ".join(f"{code} {language}" for code, language in codes.items())
        unseen = list(codes.values()).count(UNSEEN)
        yield f"{name}: {few if len(codes) < 9 else f'{len(codes)} languages, {unseen} unseen'}"
    for name in list(experiment.vocabularies)[1:]:
        own = experiment.of_vocabulary(name)
        yield f"vocabulary {name}: {own.vocabulary.size} pieces, {codes_of(own)}"
        for role in ("train", "validation"):
            pairs = [f"{corpus.name} {pair}" for corpus, pair in experiment.pairs_of(role, name)]
            yield f"vocabulary {name}, {role}: {', '.join(pairs)}"
    for name, system in experiment.systems.items():
        sizes = f"{system.model.layers} layers, {system.train.steps} steps"
        yield f"system {name}: {sizes}, {codes_of(experiment.of_system(name))}"
    for name in ("shown", "ablated", "tabled", "listed"):
        yield f"{name}: {' '.join(getattr(experiment, name))}"
    yield f"segmenters: {', '.join(' '.join(item) for item in experiment.segmenters.items())}"


EDITED = ["real", "divided", "pairs", "opus", "sets", "documents", "narrowed"]


@pytest.mark.parametrize("name", EDITED)
def test_what_an_experiment_is_made_of_after_an_edit(project, name):
    """tests/golden/experiments/: an edit, and what differs from the experiment without it; {}, and
    the whole."""
    base = list(resolved(project.load(BASES[name])))

    def changed_lines(line):
        value, edits = BASES[name], yaml.safe_load(line)
        for key, new in edits.items():
            value = edited(value, key, new)
        lines = resolved(project.load(value))
        return "\n".join(each for each in lines if not edits or each not in base)

    golden.replay(f"experiments/{name}.txt", changed_lines)


def test_a_part_is_named_with_its_corpus(divided):
    experiment = divided.load()
    assert experiment.evalsets["ntrex"].part == "test"
    assert experiment.corpus("NTREX+train", "v1") == ("train", experiment.corpora[1])
    with pytest.raises(EmsError, match="experiment mine has no corpus A/v1"):
        experiment.corpus("A", "v1")


# --- the languages of a benchmark


def printed(table):
    """The Tatoeba codes of a table of EMS v2 as it is copied for the tables."""
    name = f"ems-v2-table{table}.csv"
    text = files("ems.tables").joinpath("printed", name).read_text(encoding="utf-8")
    codes = dict.fromkeys(row["language"] for row in csv.DictReader(text.splitlines()))
    return {code for code in codes if code.islower()}  # not "Avg."


def language_table():
    text = files("ems.config.languages").joinpath("languages.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_all_of_tatoeba_are_the_languages_of_tables_four_and_six_the_latter_unseen(divided):
    value = DIVIDED | {"languages": [row["iso1"] for row in language_table()]}
    codes = divided.load(value).evalsets["tatoeba"].languages
    unseen = {code for code, language in codes.items() if language == UNSEEN}
    assert (len(codes), len(unseen)) == (112, 54)
    assert unseen == printed("06-tatoeba-unseen")
    assert set(codes) - unseen == printed("04-tatoeba")
    assert shipped("small62").evalsets["tatoeba"].languages == codes


def test_all_of_a_benchmark_does_not_depend_on_the_languages_of_the_experiment(divided):
    more = edited(DIVIDED, "languages", ["en", "de", "ja", "fr", "sw"])
    few, more = divided.load(DIVIDED), divided.load(more)
    columns = {"flores200": "flores200", "sib200": "flores200", "ntrex": "iso1"}
    for name, french in zip(few.evalsets, ("fra", "fra_Latn", "fra_Latn", "fr"), strict=True):
        languages = few.evalsets[name].languages
        assert languages == more.evalsets[name].languages
        if name in columns:
            assert set(languages) == {row[columns[name]] for row in language_table()} - {"-", "en"}
        assert languages[french] == more.spoken(name)[french] == "fr"
        assert few.spoken(name)[french] == UNSEEN
    assert few.spoken("ntrex")["de"] == few.spoken("tatoeba")["deu"] == "de"
