"""The law of spoilt JSON: whatever a value, a key or the whole of a file is turned into, its reader
works or says in one line what it expected. There is no other error.
"""

import copy
import json
import random
from functools import partial
from io import FileIO

import numpy as np
import pytest
from made import scores, tables
from made.corpora import PAIRS, moses_of
from made.models import write_model
from made.shards import vocabulary, write_pairs
from made.tables import demo_report, write_cost, write_table
from made.train import train_until

from ems.base.errors import EmsError
from ems.bench.scores import packed
from ems.benchmarks.bucc2018.table import write_missed_table
from ems.benchmarks.xsimpp.data import KINDS, read_kinds
from ems.corpora.download import HEADERS, PartialFile, part_path
from ems.corpora.fetch import Release
from ems.model.encode import SentenceEncoder
from ems.shards.index import read_index, shards_in, shards_of, write_index
from ems.shards.inspect import inspect_shards
from ems.shards.reader import PairStore
from ems.shards.shard import Shard, verify_shards
from ems.shards.writer import write_shards
from ems.tables.compare import plot_deltas, write_comparison
from ems.tables.corpora import (
    write_corpora_table,
    write_decontamination_table,
    write_filters_table,
    write_vocabulary_table,
)
from ems.tables.logs import write_costs_table
from ems.tables.models import write_models_table
from ems.train.checkpoint import checkpoints, verified
from ems.train.job import IDENTITY, claim_identity

OTHERS = [None, True, -1, 1.5, 10**30, "", "x", "../../x", [], {}, [[]], {"a": None}]


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Thousands of tables are written here, each for a moment: the disk need not keep one."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


def spoilt(value):
    """Every document that differs from `value` in one place: a value that became another, an entry
    that went, a name that leads elsewhere.
    """
    yield from (other for other in OTHERS if other != value)
    if isinstance(value, dict):
        for key, inner in value.items():
            rest = {name: each for name, each in value.items() if name != key}
            yield rest
            yield {**rest, "../../x": inner}
            yield from ({**value, key: changed} for changed in spoilt(inner))
    elif isinstance(value, list):
        for at, inner in enumerate(value[:3]):
            yield value[:at] + value[at + 1 :]
            yield from ([*value[:at], changed, *value[at + 1 :]] for changed in spoilt(inner))


def hold(path, read):
    """Spoil a JSON file in every way; return the number of ways. The reader takes the whole."""
    content = path.read_bytes()
    read()
    messages, values = [], list(spoilt(json.loads(content)))
    for value in values:
        path.write_text(json.dumps(value))
        try:
            read()
        except EmsError as error:
            messages.append(str(error))
    path.write_bytes(content)
    assert len(messages) > len(OTHERS) // 2  # the reader does read this file
    assert not [line for line in messages if "\n" in line and "cannot share a table" not in line]
    return len(values)


def tables_of(folder):
    out = folder / "t.tex"
    bits = np.arange(8) % 3 > 0
    share, hits = 100 * bits.sum() / 8, packed(bits)
    places = [way for code in ("de", "fr") for way in ((code, "en"), ("en", code))]
    rows = [scores.row(*place, share, 8, hits=hits) for place in places]
    files = [scores.write_scores(folder, name, {"de": 1, "fr": 1}, rows=rows) for name in "AB"]
    yield "scores", files[0], lambda: write_table("tatoeba", files, out, [], None)
    yield "compared", files[1], lambda: write_comparison(*(path.parent for path in files))
    yield "deltas", files[1], lambda: plot_deltas(files, ["A", "B"], folder / "f.svg")
    mined = scores.write_bucc(folder, "A", {"de": 50.0}, scores.BUCC, {"de": [scores.GERMAN]})
    yield "missed", mined, lambda: write_missed_table([mined], out)
    for name, path, printed in (
        ("mldoc", scores.write_accuracies(folder, "mldoc", "A", {"en-de": [50.0, 60.0]}), []),
        ("bucc2018", mined, ["EMS"]),
        ("wordorder", scores.write_cosine(folder, "A", 0.5), []),
        ("flores", scores.write_flores(folder, "A", ["de", "fr"]), ["EMS"]),
        ("xsim", scores.write_errors(folder, "A", "xsimpp", {"de": 1.0}, {"de": {"x": 2}}), []),
        ("paracrawl", scores.write_retrieval(folder, "A", "paracrawl", {"de": (5, 6)}), ["EMS"]),
    ):
        yield name, path, partial(write_table, name, [path], out, printed)
    report = demo_report(folder / "decontamination.json")
    writers = (write_corpora_table, write_decontamination_table, write_filters_table)
    yield "report", report, lambda: [write(report, out) for write in writers]
    model = tables.write_model(folder, "ems", ["en", "fr"])
    yield "trained", model, lambda: write_models_table([model], report, [], out)
    cost = write_cost(folder / "costs", "train/ems", "train")
    yield "costs", cost, lambda: write_costs_table(folder / "costs", out)
    counts = {"de": {"lines": 1, "characters": 2, "tokens": 3, "unknown": 0}}
    pieces = folder / "shared.json"
    pieces.write_text(json.dumps({"pieces": 3, "scripts": {"Latin": 3}, "languages": counts}))
    yield "pieces", pieces, lambda: write_vocabulary_table([pieces], out)


TABLES = ["scores", "compared", "deltas", "missed", "mldoc", "bucc2018", "wordorder", "flores"]
TABLES += ["xsim", "paracrawl", "report", "trained", "costs", "pieces"]


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_spoilt_scores_or_reports_is_one_line_or_a_table(kind, tmp_path):
    cases = {name: (path, read) for name, path, read in tables_of(tmp_path)}
    assert list(cases) == TABLES
    assert hold(*cases[kind]) > 30


@pytest.fixture
def shards(tmp_path):
    """Shards of one pair with the report of where they come from, and the list of them."""
    pieces = vocabulary(tmp_path / "v.model", 200)
    root = tmp_path / "shards/own"
    source = write_pairs(tmp_path / "segmented" / "de-en.tsv", 12, random.Random(1))
    write_shards(source, pieces, root / "A/v1/de-en", pairs=6)
    write_index({"train": [root / "A/v1/de-en"], "validation": []}, root / "index.json")
    report = tmp_path / "text/clean/A/v1/de-en.json"
    report.parent.mkdir(parents=True)
    counted = {"files": {"de-en": 40}, "archives": {"de-en": "A/v1/moses/de-en.txt.zip"}}
    report.write_text(json.dumps({"threshold": None, **counted}))
    return root, pieces, report


def test_spoilt_lists_of_shards_are_one_line(shards):
    root, pieces, report = shards

    def read():
        folders = read_index(root / "index.json")["train"]
        PairStore(shards_of(folders, ["de", "en"]), ["de", "en"], 10).draw(1, 1, 4, 0.5)
        verify_shards(list(map(Shard, folders)))
        shards_in(root / "A/v1/de-en")

    folder = root / "A/v1/de-en"
    assert hold(root / "index.json", read) > 30
    assert hold(folder / "manifest.json", lambda: shards_in(folder)) > 30
    one = folder / "00000"
    assert hold(one / "manifest.json", lambda: verify_shards([Shard(one)])) > 30
    assert hold(report, lambda: inspect_shards(shards_in(folder), "de-en", 0, pieces)) > 30


def test_a_spoilt_description_of_a_model_is_one_line(tmp_path):
    folder = write_model(tmp_path / "model", ["de", "en"], ["ka ti va sol"] * 40, pieces=25)
    assert hold(folder / "model.json", lambda: SentenceEncoder(folder).encode(["a"], "en")) > 100


def test_a_spoilt_lock_of_a_download_is_one_line(tmp_path):
    source, out = tmp_path / "source", tmp_path / "data/x.zip"
    moses_of(source / "C/v1/moses/de-en.txt.zip", PAIRS)
    fetch = partial(Release("moses", str(source), "C", "v1").fetch, "de-en", out)
    fetch()
    assert hold(out.with_name("x.zip.lock.json"), fetch) > 30


def test_a_spoilt_memory_of_a_download_starts_it_anew(tmp_path):
    out = tmp_path / "x.zip"
    memory = part_path(out).with_name(f"{part_path(out).name}.json")
    said = {"url": "http://h/x.zip", "length": 9, "etag": '"1"', "modified": None}
    for value in spoilt(said):
        part_path(out).write_bytes(b"12345")
        memory.write_text(json.dumps(value))
        with FileIO(part_path(out), "r+") as writer:
            part = PartialFile("http://h/x.zip", out, writer)
            asked = part.headers().items() - HEADERS.items()
            assert dict(asked) in ({}, {"Range": "bytes=5-", "If-Range": part.response.get("etag")})


def test_spoilt_kinds_of_made_sentences_are_one_line(tmp_path):
    path = tmp_path / KINDS
    path.write_text(json.dumps({"a b": {"errtype": "x", "src": "c"}}))
    assert hold(path, lambda: read_kinds(path)) > 30


def test_spoilt_state_of_a_training_is_passed_over(toy, tmp_path):
    state = train_until(toy, tmp_path, 20)
    (folder, *_) = checkpoints(state)
    assert hold(folder / "state.json", lambda: verified(folder)) > 30
    identity = json.loads((state / IDENTITY).read_text())
    for value in (*OTHERS, *({**identity, key: None} for key in identity)):
        (state / IDENTITY).write_text(json.dumps(value))
        with pytest.raises(EmsError, match="an unfinished run of this system is at step 20"):
            claim_identity(state.parent, copy.deepcopy(identity) | {"vocabulary": "another"})
