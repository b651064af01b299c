"""Laws of validation on several corpora: each counts alike, and what is large costs no more."""

from dataclasses import dataclass, field

import pytest
import torch
from made.corpora import translations, write_lines
from made.train import LANGUAGES, MAX_TOKENS

from ems.model.objectives.system import System
from ems.shards.index import shards_in
from ems.shards.reader import PairStore
from ems.shards.writer import write_shards
from ems.train import validate as module
from ems.train.distributed import World
from ems.train.validate import validate

LOSSES = ("xtr", "contrastive", "total")
CORPORA = {  # folder of a corpus -> language pair -> sentence pairs
    "News+validation/v1": {"de-en": 9, "en-fr": 14},
    "Talks/v2": {"de-en": 23},
    "Books+held/v1": {"de-fr": 6, "en-fr": 11},
}
NAMES = ["Books", "News", "Talks"]


@pytest.fixture(scope="module")
def write(toy):
    """Writes the shards of a corpus, below a folder; those of its first pairs if `most` is set."""

    def shards(folder, corpora, most=None, size=1000):
        made = []
        for name, counts in corpora.items():
            for pair, count in counts.items():
                first, second = pair.split("-")
                items = list(translations(count, LANGUAGES, f"{name} {pair}"))[:most]
                lines = [f"{item[first]}\t{item[second]}\t1" for item in items]
                source = write_lines(folder / "text" / name / f"{pair}.tsv", lines)
                out = folder / name / pair
                write_shards(source, toy.vocabulary, out, pairs=size)
                made += shards_in(out)
        return made

    return shards


@pytest.fixture(scope="module")
def system(toy):
    torch.manual_seed(0)
    return System(toy.experiment().systems["ems"], 3, 300)


def row_of(system, shards, world=None):
    return validate(system, PairStore(shards, LANGUAGES, MAX_TOKENS), 4, world)


def test_p1_is_the_mean_of_the_corpora_and_losses_are_the_mean_of_all_pairs(
    system, write, tmp_path
):
    """A corpus by itself is what it was; the order in which they are named changes nothing."""
    alone = {
        name.partition("/")[0].partition("+")[0]: (
            row_of(system, write(tmp_path / "alone", {name: own})),
            sum(own.values()),
        )
        for name, own in CORPORA.items()
    }
    assert all("p1_by_corpus" not in row for row, _ in alone.values())
    shards = write(tmp_path / "all", CORPORA)
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


def test_parts_and_releases_of_a_corpus_are_one_corpus(system, write, tmp_path):
    parts = {"News+validation/v1": {"de-en": 9}, "News+more/v2": {"de-en": 8, "en-fr": 5}}
    row = row_of(system, write(tmp_path, parts))
    assert "p1_by_corpus" not in row
    assert row["p1"] == pytest.approx(sum(row["p1_by_language"].values()) / 2)


def test_of_a_corpus_and_language_pair_only_so_many_pairs_cost_anything(
    system, write, tmp_path, monkeypatch
):
    """Its first ones, however they are cut into shards; where there are fewer nothing changes."""
    whole = write(tmp_path / "whole", CORPORA, size=5)
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
    assert row == row_of(system, write(tmp_path / "first", CORPORA, most=7))


@dataclass(frozen=True)
class OneOfSome(World):
    """A process whose sums are those of all processes before it."""

    seen: list = field(default_factory=list)

    def sum(self, values):
        self.seen.append(values)
        return sum(self.seen)


@pytest.mark.parametrize("size", [2, 3])
def test_several_processes_share_the_batches_and_the_searches(size, system, write, tmp_path):
    shards, seen = write(tmp_path, CORPORA), []
    expected = row_of(system, shards)
    for rank in range(size):
        row = row_of(system, shards, OneOfSome(rank, size, seen=seen))
    assert row.keys() == expected.keys()
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=1e-9), name
    shares = [values[-5:].tolist() for values in seen]  # of five language pairs of corpora
    assert all(sum(share[at] > 0 for share in shares) <= 1 for at in range(5))
    assert all(any(share) for share in shares)
