"""Laws of duplicates on disk: what stays is what a loop with a set leaves, whatever the memory, and
the corpus that stands first keeps a pair."""

import random
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from made.corpora import moses_of
from made.experiments import MINIMAL, Settings, hashes
from made.text import tiny

from ems.base.errors import EmsError
from ems.config.experiment import Corpus
from ems.text import duplicates as module
from ems.text.clean import CleanSource, clean_corpus
from ems.text.duplicates import distinct, first_ones, hashes_of
from ems.text.evalkeys import write_keys
from ems.text.filters import CleanReport, in_batches
from ems.text.tsv import read_tsv


def pairs_of(seed, count=3_000):
    """Pairs of which many are equal; some are the same text cut elsewhere."""
    draw = random.Random(seed)
    return [(draw.choice("abcde") * draw.randint(1, 30), draw.choice("ab c")) for _ in range(count)]


def write(path, pairs):
    path.write_text("".join(f"{a}\t{b}\t{at}\n" for at, (a, b) in enumerate(pairs, 1)))
    return path


def left(pairs, earlier, folder, **options):
    """What stays of some pairs, with their lines, and the report."""
    rows = [(*pair, at) for at, pair in enumerate(pairs, start=1)]
    report = CleanReport(read=len(rows))
    kept = list(chain.from_iterable(distinct(in_batches(rows), earlier, folder, report, **options)))
    assert len(kept) == len(rows) - report.removed["duplicates"]
    return kept, report


@pytest.mark.parametrize("part", [7, 1_000, 1 << 20])
def test_what_stays_is_what_a_set_leaves_whatever_is_sorted_at_once(tmp_path, part):
    earlier = [pairs_of(1, 200), pairs_of(2, 100)]
    paths = [write(tmp_path / f"{at}.tsv", pairs) for at, pairs in enumerate(earlier)]
    seen, expected = {pair for pairs in earlier for pair in pairs}, []
    for at, pair in enumerate(pairs := pairs_of(3), start=1):
        if pair not in seen:
            seen.add(pair)
            expected.append((*pair, at))
    assert 20 < len(expected) < 2_000
    kept, report = left(pairs, paths, tmp_path / "scratch", part=part)
    assert kept == expected
    assert [line for line, _ in report.examples["duplicates"]] == sorted(
        {*range(1, len(pairs) + 1)} - {row[2] for row in expected}
    )[:3]
    assert not (tmp_path / "scratch").exists()


def test_nothing_is_left_of_nothing_and_what_a_killed_run_left_is_removed(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "hashes").write_bytes(hashes_of(["a\tb"]).tobytes())
    assert left([], [], tmp_path / "scratch")[0] == []
    assert left([("a", "b")], [], tmp_path / "scratch")[0] == [("a", "b", 1)]


def test_hashes_at_the_ends_of_the_range_are_in_some_part(tmp_path):
    ends = np.array([2**64 - 1, 1, 2**63, 2**63 - 1, 1, 2**64 - 1], np.uint64)
    (tmp_path / "hashes").write_bytes(ends.tobytes())
    for part in (1, 2, 3, 6):
        assert first_ones(tmp_path / "hashes", 0, part).tolist() == [True] * 4 + [False] * 2
        assert first_ones(tmp_path / "hashes", 3, part).tolist() == [True, False, False]


# --- in the cleaning


def cleaned(experiment, folder, name, pairs, *earlier):
    """The clean pair file of a corpus, its pairs, and its report."""
    path = moses_of(folder / name / "de-en.txt.zip", pairs, corpus=name)
    write_keys({}, folder / "evalkeys.tsv")
    source = CleanSource(name, "v1", "de-en", (path,), earlier=earlier)
    out = folder / name / "de-en.tsv"
    report = clean_corpus(experiment, source, folder / "evalkeys.tsv", out)
    assert sorted(item.name for item in out.parent.iterdir()) == sorted(
        ["de-en.json", "de-en.tsv", "de-en.txt.zip"]
    )
    return out, [row[:2] for row in read_tsv(out)], report


def experiment_of(*names, **clean):
    corpora = tuple(Corpus(name, "v1", "nowhere", True, ("de-en",), None) for name in names)
    return replace(tiny(clean=clean), corpora=corpora, validation=())


def test_the_corpus_that_stands_first_keeps_a_pair_and_each_loss_is_counted(tmp_path):
    experiment = experiment_of("A", "B", "C", duplicates="across")
    first, a, _ = cleaned(experiment, tmp_path, "A", [("x", "1"), ("y", "2"), ("x ", "1")])
    second, b, report = cleaned(
        experiment, tmp_path, "B", [("y", " 2"), ("z", "3"), ("y", "4"), ("z", "3")], first
    )
    assert (a, b) == ([("x", "1"), ("y", "2")], [("z", "3"), ("y", "4")])
    assert (report["read"], report["removed"]["duplicates"], report["kept"]) == (4, 2, 2)
    _, c, _ = cleaned(
        experiment, tmp_path, "C", [("y", "4"), ("x", "1"), ("w", "5")], first, second
    )
    assert c == [("w", "5")]
    message = "C de-en: `clean.duplicates: across` needs the clean pairs of A/v1, B/v1, found 1 fil"
    with pytest.raises(EmsError, match=message):
        cleaned(experiment, tmp_path, "C", [("y", "4")], first)


def test_a_corpus_that_is_too_large_for_memory_has_the_bytes_of_one_that_is_not(
    tmp_path, monkeypatch
):
    pairs = pairs_of(4)
    (tmp_path / "disk").mkdir()
    experiment = experiment_of("A", duplicates="drop", max_characters=25)
    in_memory, _, report = cleaned(experiment, tmp_path, "A", pairs)
    monkeypatch.setattr(module, "IN_MEMORY", 10)
    monkeypatch.setattr("ems.text.duplicates.Seen", None)  # would fail
    on_disk, _, other = cleaned(experiment, tmp_path / "disk", "A", pairs)
    assert report["removed"]["duplicates"] > 1_000
    assert on_disk.read_bytes() == in_memory.read_bytes()
    assert other == report


def test_only_training_corpora_of_the_same_pair_and_vocabularies_stand_before_one(tmp_path):
    corpora = [
        {"name": "A", "version": "v1", "source": "nowhere", "languages": ["de"]},
        {"name": "B", "version": "v1", "source": "nowhere"},
        {"name": "C", "version": "v1", "source": "nowhere"},
    ]
    value = MINIMAL | {"corpora": corpora, "validation": {**corpora[1], "name": "Held"}}
    project = Settings(tmp_path, value)

    def before(duplicates, *place):
        experiment = project.load(value | {"clean": {"duplicates": duplicates}})
        return [corpus.name for corpus in experiment.before(*place)]

    assert before("across", "C", "v1", "de-en") == ["A", "B"]
    assert before("across", "C", "v1", "en-fr") == ["B"]
    assert before("across", "A", "v1", "de-en") == before("across", "Held", "v1", "de-en") == []
    assert before("drop", "C", "v1", "de-en") == []
    old, new = (project.load(value | {"clean": {"duplicates": d}}) for d in ("keep", "across"))
    assert hashes(old)["clean C de-en"] != hashes(new)["clean C de-en"]
