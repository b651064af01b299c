"""Validation text: no sentence of it is trained on, and several corpora count alike."""

import itertools
import json
from dataclasses import dataclass, field

import pytest
import torch
import yaml
from conftest import copy_project, planned
from made.corpora import translations, write_lines, write_opus, write_tatoeba
from made.experiments import MINIMAL, Settings, changed_jobs, edited
from made.text import clean_alone, law
from made.train import LANGUAGES, MAX_TOKENS, rows, validate_model

from ems.base.errors import EmsError
from ems.model.objectives.system import System
from ems.shards.index import shards_in
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.text.clean import CleanSource
from ems.text.evalkeys import held_out_files, write_eval_keys, write_keys
from ems.train import validate as module
from ems.train.distributed import World
from ems.train.validate import validate

VALUE = MINIMAL | yaml.safe_load("""
languages: [en, de, fr]
splits: {Toy: {sentences: en, parts: {train: 0.6, validation: 0.4}}}
corpora:
  - {name: Toy, version: v1, source: mirror/opus, part: train}
  - {name: Other, version: v1, source: mirror/opus}
validation:
  - {name: Toy, version: v1, source: mirror/opus, part: validation}
  - {name: News, version: v1, source: mirror/opus, languages: [de]}
decontaminate: {against: [tatoeba], validation: true}
""")


def items(name, count):
    """Translations unique to a name: every word ends in it."""
    for item in translations(count, ["en", "de", "fr"], seed=name, least=4):
        yield {
            code: " ".join(f"{word}{name}" for word in text.split()) for code, text in item.items()
        }


TOY, NEWS, OTHER = list(items("toy", 90)), list(items("news", 8)), list(items("other", 40))
# pairs of other sentences with a near-copy of a training or validation sentence on one side
QUOTED = [
    {**other, code: f"«{quoted[code].upper()}»!"}
    for (other, quoted), code in zip(
        itertools.product(items("more", 3), [*TOY[::3], *NEWS]), itertools.cycle(["en", "de", "fr"])
    )
]
CORPORA = {"Toy": TOY, "Other": OTHER + QUOTED, "News": NEWS}


def write_mirror(root):
    for name, own in CORPORA.items():
        write_opus(root / "mirror", name, "v1", own)


class Cleaned:
    """The corpora, cleaned as the workflow does: validation text first."""

    def __init__(self, root, value=VALUE):
        write_mirror(root)
        self.root, self.experiment = root, Settings(root, value).load()
        self.keys, self.held = root / "evalkeys.tsv", root / "heldkeys.tsv"
        write_keys({"somethingelse": ["tatoeba/deu"]}, self.keys)
        every = self.experiment.all_corpora()
        paths = [self.clean(c, pair)[0] for role, c in every[2:] for pair in c.pairs]
        write_eval_keys("primary", held_out_files(paths), self.held)

    def clean(self, corpus, pair, held_out=None):
        out = self.root / "clean" / corpus.label / corpus.version / f"{pair}.tsv"
        archive = self.root / "mirror/opus" / corpus.name / "v1/moses" / f"{pair}.txt.zip"
        source = CleanSource(corpus.label, "v1", pair, (archive,), held_out=held_out)
        return out, clean_alone(self.experiment, source, self.keys, out)

    def training(self, held_out):
        """{(corpus, pair): (pairs, report)} of the training text."""
        result = {}
        for corpus in self.experiment.corpora:
            for pair in corpus.pairs:
                out, entry = self.clean(corpus, pair, held_out)
                result[corpus.name, pair] = read(out), entry
        return result


def read(path):
    return [tuple(line.split("\t")[:2]) for line in path.read_text().splitlines()]


def sentences_of(pairs):
    return {law(side) for pair in pairs for side in pair}


def validating(root):
    paths = [*root.rglob("Toy+validation/v1/*.tsv"), *root.rglob("News/v1/*.tsv")]
    assert len(paths) == 3
    return set().union(*(sentences_of(read(path)) for path in paths))


def test_no_validation_sentence_is_on_either_side_of_a_training_pair(tmp_path):
    cleaned = Cleaned(tmp_path)
    held = validating(tmp_path / "clean")
    assert len(held) > 3 * 25
    made = cleaned.training(cleaned.held)
    for (name, pair), (kept, entry) in made.items():
        every = {"Toy": TOY, "Other": OTHER + QUOTED}[name]
        pairs = [tuple(item[code] for code in pair.split("-")) for item in every]
        hits = [bool(sentences_of([row]) & held) for row in pairs]
        if name == "Toy":  # its own held-out sentences are not read
            assert set(kept) == {row for row, hit in zip(pairs, hits, strict=True) if not hit}
            assert entry["removed"]["evaluation"] == 0
            continue
        assert kept == [row for row, hit in zip(pairs, hits, strict=True) if not hit]
        assert entry["removed"]["evaluation"] == sum(hits) > 15
        counts = entry["by_benchmark"]
        assert counts.keys() == {"validation"}
        assert counts["validation"]["pairs"] == sum(hits)
        assert all(counts["validation"][code] > 5 for code in pair.split("-"))


@pytest.mark.parametrize("scope", ["any", "pair"])
def test_the_scope_pair_compares_only_languages_of_the_pair(tmp_path, scope):
    value = edited(VALUE, "decontaminate.scope", scope)
    cleaned = Cleaned(tmp_path, value)
    strange = [{"en": "nothing at all", "fr": NEWS[0]["de"]}, {"en": NEWS[1]["en"], "fr": "rien"}]
    write_opus(tmp_path / "mirror", "Other", "v1", strange * 2 + OTHER)
    kept, entry = cleaned.training(cleaned.held)["Other", "en-fr"]
    assert entry["removed"]["evaluation"] == (4 if scope == "any" else 2)
    assert ("nothing at all", NEWS[0]["de"]) not in kept or scope == "pair"


def test_a_sentence_in_benchmark_and_validation_counts_for_both(tmp_path):
    cleaned = Cleaned(tmp_path)
    write_keys({law(NEWS[0]["en"]): ["tatoeba/deu"]}, cleaned.keys)
    write_opus(tmp_path / "mirror", "Other", "v1", [{**OTHER[0], "en": NEWS[0]["en"]}, *OTHER[1:]])
    _, entry = cleaned.training(cleaned.held)["Other", "de-en"]
    assert entry["by_benchmark"] == {
        name: {"pairs": 1, "en": 1} for name in ("tatoeba", "validation")
    }
    assert entry["removed"]["evaluation"] == 1


def test_training_text_is_never_cleaned_without_the_validation_sentences(tmp_path):
    cleaned = Cleaned(tmp_path)
    with pytest.raises(EmsError, match="Other: give the sentences of `validation`, --held-out"):
        cleaned.clean(cleaned.experiment.corpora[1], "de-en")
    assert not (tmp_path / "clean/Other").exists()
    off = Cleaned(tmp_path / "off", edited(VALUE, "decontaminate.validation", False))
    _, entry = off.clean(off.experiment.corpora[1], "de-en")
    assert entry["removed"]["evaluation"] == 0
    message = Settings(tmp_path / "none").error(edited(VALUE, "validation", None))
    assert "decontaminate.validation: " in message


def test_decontaminating_by_validation_changes_the_hash_of_cleaning_only(tmp_path):
    settings, off = Settings(tmp_path), edited(VALUE, "decontaminate.validation", False)
    plain = edited(VALUE, "decontaminate", {"against": ["tatoeba"]})
    assert changed_jobs(settings, plain, off) == set()
    changed = changed_jobs(settings, off, VALUE)
    assert {name.split()[0] for name in changed} == {"evalkeys", "clean"}


# --- in the workflow
RUN = VALUE | yaml.safe_load("""
sources: {tatoeba: mirror/tatoeba}
evalsets: {tatoeba: {version: v1}}
multiway: {through: en, most: 2}
vocabulary: {size: 300, sample_lines: 2000, character_coverage: 1.0}
model: {layers: 1, width: 16, heads: 2, feed_forward: 32, max_tokens: 40}
objectives: {head: {language_width: 4}, contrastive: {width: 8}}
train: {steps: 12, batch_pairs: 8, validate_every: 4, threads: 1, device: cpu, keep: best,
  best_by: p1}
systems: {ems: {}}
tables: {printed: []}
""")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project in which the workflow cleaned, joined and trained."""
    project = copy_project(tmp_path_factory.mktemp("held"))
    write_mirror(project.folder)
    benchmark = [(item["de"], item["en"]) for item in items("bench", 10)]
    write_tatoeba(project.folder / "mirror", "deu", benchmark)
    write_tatoeba(project.folder / "mirror", "fra", [("phrase", "phrase in English")])
    project.select("held", RUN)
    project.snakemake("models", "results/held/reports/decontamination.json")
    project.results = project.folder / "results/held"
    return project


@pytest.mark.slow
def test_no_validation_sentence_is_trained_on_even_as_a_further_pair(run):
    held = validating(run.results / "text/clean")
    trained = [*run.results.glob("text/segmented/*/*/*.tsv")]
    trained = [path for path in trained if path.parts[-3] not in ("Toy+validation", "News")]
    assert {path.parts[-3] for path in trained} == {"Toy+train", "Other", "Multiway"}
    for path in trained:
        assert read(path)
        assert sentences_of(read(path)).isdisjoint(held), path
    report = json.loads((run.results / "reports/decontamination.json").read_text())
    assert report["validation"] is True
    removed = {e["corpus"]: e["by_benchmark"] for e in report["corpora"] if e["pair"] == "de-en"}
    assert removed["Other"].keys() == {"validation"}
    assert removed["News"] == removed["Toy+validation"] == {}


@pytest.mark.slow
def test_validation_of_the_finished_model_gives_the_same_scores(run):
    shards = run.results / "shards/shared"
    paths = [shards / "Toy+validation/v1" / pair for pair in ("de-en", "en-fr")]
    model = run.results / "models/ems"
    one = validate_model(model, paths)
    both = validate_model(model, [*paths, shards / "News/v1/de-en"])
    assert "p1_by_corpus" not in one
    (kept,) = [row for row in rows(run.results / "models/ems", "validation") if row.get("kept")]
    names = ("p1", "p1_by_language", "p1_by_corpus")
    assert {name: both[name] for name in names} == {name: kept[name] for name in names}
    assert both["p1_by_corpus"].keys() == {"News", "Toy"}
    assert one["p1"] == both["p1_by_corpus"]["Toy"]


@pytest.mark.slow
def test_other_validation_text_cleans_the_training_text_again(run):
    assert "Nothing to be done" in run.snakemake("models")
    path = run.folder / "configs/held.yaml"
    before = path.read_text()
    value = yaml.safe_load(before)
    value["validation"][1]["languages"] = ["de", "fr"]
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    plan = run.snakemake("-n", "models")
    path.write_text(before)
    jobs = planned(plan)
    assert (jobs["prepare"], jobs["prepare_validation"]) == (2, 1)
    assert plan.count("rule heldkeys:") == 1


# --- several corpora in one validation
LOSSES = ("xtr", "contrastive", "total")
VALIDATED = {  # folder of a corpus -> language pair -> sentence pairs
    "News+validation/v1": {"de-en": 9, "en-fr": 14},
    "Talks/v2": {"de-en": 23},
    "Books+held/v1": {"de-fr": 6, "en-fr": 11},
}
NAMES = ["Books", "News", "Talks"]


@pytest.fixture(scope="module")
def write(toy):
    """Write the shards of corpora; with `most`, of their first pairs only."""

    def shards(folder, corpora, most=None, size=1000):
        result = []
        for name, counts in corpora.items():
            for pair, count in counts.items():
                first, second = pair.split("-")
                items = list(translations(count, LANGUAGES, f"{name} {pair}"))[:most]
                lines = [f"{item[first]}\t{item[second]}\t1" for item in items]
                source = write_lines(folder / "text" / name / f"{pair}.tsv", lines)
                out = folder / name / pair
                write_shards(source, toy.vocabulary, out, pairs=size)
                result += shards_in(out)
        return result

    return shards


@pytest.fixture(scope="module")
def system(toy):
    torch.manual_seed(0)
    return System(toy.experiment().systems["ems"], 3, 300)


def row_of(system, shards, world=None):
    return validate(system, PairStore(shards, LANGUAGES, MAX_TOKENS), 4, world)


def test_p1_is_the_mean_of_corpora_and_a_loss_the_mean_of_pairs(system, write, tmp_path):
    alone = {}
    for name, own in VALIDATED.items():
        row = row_of(system, write(tmp_path / "alone", {name: own}))
        alone[name.partition("/")[0].partition("+")[0]] = (row, sum(own.values()))
    assert all("p1_by_corpus" not in row for row, _ in alone.values())
    parts = {"News+validation/v1": {"de-en": 9}, "News+more/v2": {"de-en": 8, "en-fr": 5}}
    assert "p1_by_corpus" not in row_of(system, write(tmp_path / "parts", parts))  # one corpus
    shards = write(tmp_path / "all", VALIDATED)
    row = row_of(system, shards)
    assert row == row_of(system, shards[::-1])
    assert row["p1_by_corpus"] == {name: alone[name][0]["p1"] for name in NAMES}
    assert row["p1"] == pytest.approx(sum(row["p1_by_corpus"].values()) / 3)
    pairs = sum(count for _, count in alone.values())
    for loss in LOSSES:
        mean = sum(own[loss] * count for own, count in alone.values()) / pairs
        assert row[loss] == pytest.approx(mean, rel=1e-6)
    of = {name: own["p1_by_language"] for name, (own, _) in alone.items()}
    assert list(row["p1_by_language"]) == ["de", "de-fr", "fr"]
    assert row["p1_by_language"] == {
        "de": pytest.approx((of["News"]["de"] + of["Talks"]["de"]) / 2),
        "de-fr": of["Books"]["de-fr"],
        "fr": pytest.approx((of["News"]["fr"] + of["Books"]["fr"]) / 2),
    }
    weighted = sum(score * n for (own, n) in alone.values() for score in [own["p1"]]) / pairs
    assert row["p1"] != pytest.approx(weighted)  # a small corpus counts as a large one


def test_only_the_first_pairs_of_a_language_pair_are_validated(
    system, write, tmp_path, monkeypatch
):
    whole = write(tmp_path / "whole", VALIDATED, size=5)
    assert module.MOST == 1000
    before = row_of(system, whole)
    monkeypatch.setattr(module, "MOST", 23)
    assert row_of(system, whole) == before
    monkeypatch.setattr(module, "MOST", 7)
    seen = []
    assemble = PairStore.assemble
    monkeypatch.setattr(PairStore, "assemble", lambda *a: seen.append(len(a[1])) or assemble(*a))
    row = row_of(system, whole)
    assert sum(seen) == 2 * (4 * 7 + 6)  # for the losses, and for P@1
    assert row != before
    assert row == row_of(system, write(tmp_path / "first", VALIDATED, most=7))


@dataclass(frozen=True)
class OneOfSome(World):
    """A process that adds the sums of the processes before it."""

    seen: list = field(default_factory=list)

    def sum(self, values):
        self.seen.append(values)
        return sum(self.seen)


@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_the_batches_and_the_searches(size, system, write, tmp_path):
    shards, seen = write(tmp_path, VALIDATED), []
    expected = row_of(system, shards)
    for rank in range(size):
        row = row_of(system, shards, OneOfSome(rank, size, seen=seen))
    assert row.keys() == expected.keys()
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=1e-9), name
    shares = [values[-5:].tolist() for values in seen]  # of five language pairs of corpora
    assert all(sum(share[at] > 0 for share in shares) <= 1 for at in range(5))
    assert all(any(share) for share in shares)
