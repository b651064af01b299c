"""Laws of `decontaminate.validation`: no sentence that validates comes back in what is trained on,
through no corpus, language pair or further pair; and what chooses is told by its corpus.
"""

import itertools
import json

import pytest
import yaml
from conftest import copy_project
from made.corpora import translations, write_opus, write_tatoeba
from made.experiments import MINIMAL, Settings, changed_jobs, edited
from made.text import law
from made.train import rows

from ems.base.errors import EmsError
from ems.text.clean import CleanSource, clean_corpus
from ems.text.evalkeys import held_out_files, write_eval_keys, write_keys

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
    """Translations that no other name has: each word ends in it."""
    for item in translations(count, ["en", "de", "fr"], seed=name, least=4):
        yield {
            code: " ".join(f"{word}{name}" for word in text.split()) for code, text in item.items()
        }


TOY, NEWS, OTHER = list(items("toy", 90)), list(items("news", 8)), list(items("other", 40))
# sentences of the others with the translation of a third one, in other clothes
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
    """The corpora, cleaned as the workflow does: what validates first."""

    def __init__(self, root, value=VALUE):
        write_mirror(root)
        self.root, self.experiment = root, Settings(root, value).load()
        self.keys, self.held = root / "evalkeys.tsv", root / "heldkeys.tsv"
        write_keys({"somethingelse": ["tatoeba/deu"]}, self.keys)
        every = self.experiment.all_corpora()
        paths = [self.clean(c, pair)[0] for role, c in every[2:] for pair in c.pairs]
        write_eval_keys("folded", held_out_files(paths), self.held)

    def clean(self, corpus, pair, held_out=None):
        out = self.root / "clean" / corpus.label / corpus.version / f"{pair}.tsv"
        archive = self.root / "mirror/opus" / corpus.name / "v1/moses" / f"{pair}.txt.zip"
        source = CleanSource(corpus.label, "v1", pair, (archive,), held_out=held_out)
        return out, clean_corpus(self.experiment, source, self.keys, out)

    def training(self, held_out):
        """(corpus, pair) -> (pairs, report) of what is trained on."""
        made = {}
        for corpus in self.experiment.corpora:
            for pair in corpus.pairs:
                out, entry = self.clean(corpus, pair, held_out)
                made[corpus.name, pair] = read(out), entry
        return made


def read(path):
    return [tuple(line.split("\t")[:2]) for line in path.read_text().splitlines()]


def sentences_of(pairs):
    return {law(side) for pair in pairs for side in pair}


def validating(root):
    paths = [*root.rglob("Toy+validation/v1/*.tsv"), *root.rglob("News/v1/*.tsv")]
    assert len(paths) == 3
    return set().union(*(sentences_of(read(path)) for path in paths))


def test_no_sentence_that_validates_is_on_either_side_of_a_training_pair(tmp_path):
    cleaned = Cleaned(tmp_path)
    held = validating(tmp_path / "clean")
    assert len(held) > 3 * 25
    made = cleaned.training(cleaned.held)
    for (name, pair), (kept, entry) in made.items():
        every = {"Toy": TOY, "Other": OTHER + QUOTED}[name]
        pairs = [tuple(item[code] for code in pair.split("-")) for item in every]
        hits = [bool(sentences_of([row]) & held) for row in pairs]
        if name == "Toy":  # of its own held-out sentences none is read
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
def test_the_scope_pair_looks_at_the_languages_of_the_pair_alone(tmp_path, scope):
    """A German sentence that validates, where the corpus has it as French."""
    value = edited(VALUE, "decontaminate.scope", scope)
    cleaned = Cleaned(tmp_path, value)
    strange = [{"en": "nothing at all", "fr": NEWS[0]["de"]}, {"en": NEWS[1]["en"], "fr": "rien"}]
    write_opus(tmp_path / "mirror", "Other", "v1", strange * 2 + OTHER)
    kept, entry = cleaned.training(cleaned.held)["Other", "en-fr"]
    assert entry["removed"]["evaluation"] == (4 if scope == "any" else 2)
    assert ("nothing at all", NEWS[0]["de"]) not in kept or scope == "pair"


def test_a_sentence_of_both_is_counted_for_the_benchmark_and_for_validation(tmp_path):
    cleaned = Cleaned(tmp_path)
    write_keys({law(NEWS[0]["en"]): ["tatoeba/deu"]}, cleaned.keys)
    write_opus(tmp_path / "mirror", "Other", "v1", [{**OTHER[0], "en": NEWS[0]["en"]}, *OTHER[1:]])
    _, entry = cleaned.training(cleaned.held)["Other", "de-en"]
    assert entry["by_benchmark"] == {
        name: {"pairs": 1, "en": 1} for name in ("tatoeba", "validation")
    }
    assert entry["removed"]["evaluation"] == 1


def test_training_text_is_never_cleaned_without_the_sentences_that_validate(tmp_path):
    cleaned = Cleaned(tmp_path)
    with pytest.raises(EmsError, match="Other: give the sentences of `validation`, --held-out"):
        cleaned.clean(cleaned.experiment.corpora[1], "de-en")
    assert not (tmp_path / "clean/Other").exists()
    off = Cleaned(tmp_path / "off", edited(VALUE, "decontaminate.validation", False))
    _, entry = off.clean(off.experiment.corpora[1], "de-en")
    assert entry["removed"]["evaluation"] == 0


def test_without_text_to_validate_on_it_is_an_error(tmp_path):
    value = edited(VALUE, "validation", None)
    message = Settings(tmp_path).error(value)
    assert "decontaminate.validation: there is no `validation`" in message


def test_it_changes_the_hash_of_decontamination_and_its_default_that_of_nothing(tmp_path):
    settings, off = Settings(tmp_path), edited(VALUE, "decontaminate.validation", False)
    plain = edited(VALUE, "decontaminate", {"against": ["tatoeba"]})
    assert changed_jobs(settings, plain, off) == set()
    changed = changed_jobs(settings, off, VALUE)
    assert {name.split()[0] for name in changed} == {"evalkeys", "clean"}


# --- the whole workflow

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
    """A project that was cleaned, joined and trained by the workflow."""
    project = copy_project(tmp_path_factory.mktemp("held"))
    write_mirror(project.folder)
    benchmark = [(item["de"], item["en"]) for item in items("bench", 10)]
    write_tatoeba(project.folder / "mirror", "deu", benchmark)
    write_tatoeba(project.folder / "mirror", "fra", [("phrase", "phrase in English")])
    project.select("held", RUN)
    project.snakemake("models", "results/held/reports/decontamination.json")
    project.results = project.folder / "results/held"
    return project


def test_nothing_that_validates_is_trained_on_not_even_as_a_further_pair(run):
    held = validating(run.results / "text/clean")
    trained = [*run.results.glob("text/segmented/*/*/*.tsv")]
    trained = [path for path in trained if "validation" not in path.parts[-3]]
    trained = [path for path in trained if path.parts[-3] != "News"]
    assert {path.parts[-3] for path in trained} == {"Toy+train", "Other", "Multiway"}
    for path in trained:
        assert read(path)
        assert sentences_of(read(path)).isdisjoint(held), path
    report = json.loads((run.results / "reports/decontamination.json").read_text())
    assert report["validation"] is True
    removed = {e["corpus"]: e["by_benchmark"] for e in report["corpora"] if e["pair"] == "de-en"}
    assert removed["Other"].keys() == {"validation"}
    assert removed["News"] == removed["Toy+validation"] == {}


def test_p1_is_the_mean_of_the_corpora_and_the_best_of_it_is_kept(run):
    validation = rows(run.results / "models/ems", "validation")
    assert len(validation) == 4
    for row in validation:
        assert row["p1_by_corpus"].keys() == {"News", "Toy"}
        assert row["p1"] == pytest.approx(sum(row["p1_by_corpus"].values()) / 2, rel=1e-5)
        assert row["p1_by_language"].keys() == {"de", "fr"}
    kept = [row for row in validation if row.get("kept")]
    assert [row["p1"] for row in kept] == [max(row["p1"] for row in validation[1:])]


def test_a_finished_model_is_validated_on_the_same_corpora_by_their_paths(run):
    shards = run.results / "shards/shared"
    folders = [
        f"{shards}/{name}" for name in ("Toy+validation/v1/de-en", "Toy+validation/v1/en-fr")
    ]
    words = ["ems", "validate", "--model", str(run.results / "models/ems"), "--shards", *folders]
    one = json.loads(run.run(*words).stdout)
    both = json.loads(run.run(*words, f"{shards}/News/v1/de-en").stdout)
    assert "p1_by_corpus" not in one
    (kept,) = [row for row in rows(run.results / "models/ems", "validation") if row.get("kept")]
    names = ("p1", "p1_by_language", "p1_by_corpus")
    assert {name: both[name] for name in names} == {name: kept[name] for name in names}
    assert one["p1"] == both["p1_by_corpus"]["Toy"]


def test_other_text_to_validate_on_cleans_the_training_text_again(run):
    assert "Nothing to be done" in run.snakemake("models")
    path = run.folder / "configs/held.yaml"
    before = path.read_text()
    value = yaml.safe_load(before)
    value["validation"][1]["languages"] = ["de", "fr"]
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    plan = run.snakemake("-n", "models")
    path.write_text(before)
    assert plan.count("rule decontaminate:") == 5
    assert plan.count("rule heldkeys:") == 1
