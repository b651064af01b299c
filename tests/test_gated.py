"""FLORES+ and BOUQuET: fetched with a token that only their host sees, or read from a folder."""

import json
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler
from itertools import permutations

import pytest
from conftest import copy_project
from made import gated
from made.bench import HashEncoder, naive_hits, scored, unit
from made.corpora import package_of, translations, write_opus
from made.experiments import MINIMAL, TRAINING_FREE, Settings, one_line
from made.tables import csv_rows
from made.web import Server

from ems.bench.scores import read_score_file
from ems.config import plugins
from ems.config.plugins import benchmark, module
from ems.corpora.content import check_file
from ems.corpora.demo.grammar import LANGUAGES
from ems.corpora.evalsets.fetch import SetSource
from ems.corpora.evalsets.sets import read_sides

TOKEN, WRONG = f"hf_{'right' * 3}", f"hf_{'wrong' * 3}"  # in no file, this one neither
REVISION = "/datasets/x/resolve/1"
SETS = ("flores_plus", "bouquet")
CODES = {"flores_plus": "cmn_Hans", "bouquet": "arz_Arab"}
COUNT, DEV = 200, 60  # sentences of the toy's test part, and of dev
every_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def items():
    return list(translations(COUNT + DEV, LANGUAGES, seed="gated", least=4, most=9))


@pytest.fixture(scope="module")
def published(tmp_path_factory, items):
    """Set -> folder, in the publishers' forms, with columns that are not read."""
    folder = tmp_path_factory.mktemp("published")
    for name in SETS:
        for place, plain in getattr(gated, name)(items):
            rows = [row | {"domain": "news"} for row in plain]
            write(folder / name / place, rows[::-1])  # ids count, not the order of the rows
            if name == "bouquet":
                rows = [row | {"tgt_text": "English", "tags": ["a"]} for row in rows]
                parquet(folder / "parquet" / place, rows)
    return {name: folder / name for name in (*SETS, "parquet")}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def parquet(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = package_of("parquet", "pyarrow").Table.from_pylist(rows)
    package_of("parquet", "pyarrow.parquet").write_table(table, path.with_suffix(".parquet"))


# --- fetched from a server


class Gate(SimpleHTTPRequestHandler):
    """A hub: 401 without a right token, 403 without consent; `elsewhere` has its large files."""

    def do_GET(self):
        hub, token = self.server, self.headers.get("Authorization")
        hub.seen.append(token)
        status = 200 if token == f"Bearer {TOKEN}" else 401
        status = 403 if hub.closed and status == 200 else status
        if hub.open or status == 200:
            self.path = self.path.removeprefix(REVISION)
            if not hub.elsewhere:
                return super().do_GET()
            self.send_response(302)
            self.send_header("Location", f"{hub.elsewhere}{self.path}")
        else:
            self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@contextmanager
def hub(folder, **changes):
    server = Server(partial(Gate, directory=folder))
    server.seen = []
    vars(server).update({"open": False, "closed": False, "elsewhere": "", **changes})
    with server.running():
        yield server


@pytest.fixture
def gate(published, monkeypatch):
    """Serve a set as its publisher does; `serve(name)` gives the server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ExitStack() as stack:

        def serve(name, **changes):
            folder = published["parquet" if name == "bouquet" else name]
            server = stack.enter_context(hub(folder, **changes))
            record = replace(benchmark(name), published=f"{server.address}{REVISION}")
            monkeypatch.setitem(plugins.benchmarks(), name, record)
            return server

        yield serve


def fetch(name, out, source=""):
    return SetSource(name, source or benchmark(name).published, out).fetch(CODES[name])


def content(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@every_set
def test_with_a_token_a_language_is_fetched_whole_and_the_token_is_in_no_file(
    gate, tmp_path, monkeypatch, name, caplog
):
    monkeypatch.setenv("HF_TOKEN", f" {TOKEN}\n")
    server = gate(name)
    paragraphs = (COUNT + DEV) // 4 if name == "bouquet" else 0
    assert fetch(name, tmp_path / "out") == COUNT + DEV + paragraphs
    files = module(name, "data").file_names(CODES[name])
    assert server.seen == [f"Bearer {TOKEN}"] * len(files)
    check_file(tmp_path / "out" / f"{CODES[name]}.manifest.json")
    lock = json.loads((tmp_path / "out" / f"{files[0]}.lock.json").read_text())
    assert (lock["url"], len(lock["sha256"])) == (f"{benchmark(name).published}/{files[0]}", 64)
    assert TOKEN.encode() not in content(tmp_path / "out")
    assert TOKEN not in caplog.text


REFUSED = {  # the token, the hub; what the error says of them
    "no token": ("", {}, "(401, without a token)"),
    "no token as it cannot be a header": (f"{TOKEN}\nX: {WRONG}", {}, "(401, without a token)"),
    "a wrong token": (WRONG, {}, "(401, with the token in HF_TOKEN)"),
    "terms not accepted": (TOKEN, {"closed": True}, "(403, with the token in HF_TOKEN)"),
}


@every_set
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_one_line_with_the_steps_and_without_the_token(
    gate, tmp_path, monkeypatch, name, case
):
    token, changes, expected = REFUSED[case]
    monkeypatch.setenv("HF_TOKEN", token)
    server = gate(name, **changes)
    line = one_line(fetch, name, tmp_path / "out")
    page = f"{server.address}{REVISION.partition('/resolve/')[0]}"
    assert line.startswith(f"{benchmark(name).published}/")
    for words in (expected, f"open {page}, ", "accept", "create a token", "HF_TOKEN", "`path`"):
        assert words in line
    assert TOKEN not in line
    assert WRONG not in line
    assert len(server.seen) == 1  # final: not tried again
    assert content(tmp_path / "out") == b""


def test_a_host_to_which_the_hub_redirects_never_sees_the_token(
    gate, published, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with hub(published["flores_plus"], open=True) as store:
        for number, elsewhere in enumerate((store.address, "http://localhost:{}")):
            server = gate("flores_plus", elsewhere=elsewhere.format(store.server_port))
            assert fetch("flores_plus", tmp_path / str(number)) == COUNT + DEV
            assert server.seen == [f"Bearer {TOKEN}"] * 2
    assert store.seen == [None] * 4


def test_a_mirror_and_an_open_set_never_see_the_token(gate, published, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    server = gate("flores_plus")
    with hub(published["flores_plus"], open=True) as mirror:
        assert fetch("flores_plus", tmp_path / "mirror", mirror.address) == COUNT + DEV
        mirror.open = False
        line = one_line(fetch, "flores_plus", tmp_path / "closed", mirror.address)
        opened = replace(benchmark("flores_plus"), status="open", published=mirror.address)
        monkeypatch.setitem(plugins.benchmarks(), "flores_plus", opened)
        one_line(fetch, "flores_plus", tmp_path / "open", mirror.address)
    assert "expected status 200, found 401; check that the source has this file" in line
    assert mirror.seen == [None] * 4
    assert server.seen == []


# --- read from a folder


def test_parquet_json_lines_and_any_order_of_rows_give_the_same_texts(published, items):
    bouquet = module("bouquet", "data")
    for language, code in (("de", "deu_Latn"), ("ar", "arz_Arab")):
        sides = bouquet.read_sides(published["parquet"], code)
        assert sides == bouquet.read_sides(published["bouquet"], code)
        assert sides[0] == [item[language] for item in items[:COUNT]]
        assert [*map(len, sides)] == [COUNT, DEV, COUNT // 4, DEV // 4]
        assert sides[2][0] == " ".join(sides[0][:4])


def experiment_of(folder, published):
    evalsets = {name: {"version": "v1", "path": str(published[name])} for name in SETS}
    own = {"languages": ["en", "de", "zh", "ar"], "evalsets": evalsets, "benchmarks": [*SETS]}
    return {**own, "decontaminate": {"against": [*SETS]}, "systems": {"char-ngram": TRAINING_FREE}}


def test_decontamination_takes_both_parts_and_paragraphs(published, items, tmp_path):
    changes = experiment_of(tmp_path, published)
    experiment = Settings(tmp_path, MINIMAL).changed(**changes | {"systems": {"ems": {}}})
    for name in SETS:
        codes = experiment.evalsets[name].languages
        assert codes["cmn_Hans"] == "zh"
        assert codes["arb_Arab" if name == "flores_plus" else "arz_Arab"] == "ar"
        taken = {
            text
            for side in read_sides(experiment, name, published[name], "deu_Latn")
            for text in side
        }
        assert taken >= {item["de"] for item in items}
        assert len(taken) > len(items) or name == "flores_plus"


@every_set
def test_every_direction_of_sentences_and_of_paragraphs_equals_a_double_loop(
    published, tmp_path, name
):
    changes = {"languages": ["en", "de", "zh"], "benchmarks": [name]}
    changes["evalsets"] = {name: {"version": "v1"}}
    file = scored(tmp_path, name, published[name], HashEncoder(), **changes)
    levels = {"": "sentence", "paragraphs": "paragraph"} if name == "bouquet" else {"": None}
    codes, rows = ("eng_Latn", "deu_Latn", "cmn_Hans"), {}
    for measure, level in levels.items():
        part = {"level": level} if level else {}
        texts = {
            code: module(name, "data").read_language(published[name], code, **part)
            for code in codes
        }
        vectors = {
            code: unit(HashEncoder().encode(lines, "")).tolist() for code, lines in texts.items()
        }
        for one, other in permutations(codes, 2):
            hits = naive_hits(vectors[one], vectors[other])
            rows[one, other, measure] = (100 * sum(hits) / len(hits), hits)
    assert {
        (r.source, r.target, r.measure): (r.value, r.bits().tolist()) for r in file.rows
    } == rows
    assert (file.metric, file.label, file.parallel) == ("P@1", "source", True)
    assert [mean.over for mean in file.means()] == ["directions from 3 trained languages"]


MALFORMED = {
    "no text": ({"id": 1, "text": " "}, "row 2: expected an id in 'id' and a text in 'text'"),
    "an id twice": ({"id": 0, "text": "b"}, "row 2: expected an id in 'id'"),
    "no id": ({"text": "b"}, "line 2: expected a JSON object with"),
    "no object": ([1], "line 2: expected a JSON object with"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_row_is_one_line(tmp_path, case):
    row, expected = MALFORMED[case]
    write(tmp_path / "devtest/deu_Latn.jsonl", [{"id": 0, "text": "a"}, row])
    line = one_line(module("flores_plus", "data").read_language, tmp_path, "deu_Latn")
    assert line.startswith(f"{tmp_path}/devtest/deu_Latn.jsonl: {expected}")


def test_a_missing_language_a_bad_parquet_and_unequal_languages_are_one_line(
    tmp_path, published, monkeypatch
):
    read = module("bouquet", "data").read_language
    path = tmp_path / "data/sentence_level/test/deu_Latn.parquet"
    assert f"{path}: no such file" in one_line(read, tmp_path, "deu_Latn")
    parquet(path, [{"uniq_id": "P1", "text": "a"}])
    assert "a text in 'src_text'" in one_line(read, tmp_path, "deu_Latn")
    path.write_bytes(b"PAR1 cut PAR1")
    assert f"{path}: damaged or cut short" in one_line(read, tmp_path, "deu_Latn")
    monkeypatch.setattr("ems.corpora.own.find_spec", lambda name: None)
    assert "reading parquet needs pyarrow" in one_line(read, published["parquet"], "deu_Latn")


# --- from the server to the table


@pytest.mark.slow
def test_a_run_fetches_scores_and_tabulates_and_its_files_lack_the_token(
    tmp_path, published, items, monkeypatch
):
    project = copy_project(tmp_path / "project")
    new = translations(30, LANGUAGES, seed="new", least=10, most=12)
    write_opus(tmp_path / "mirror", "Own", "v1", [*items[COUNT - 20 :], *new])
    corpus = {"name": "Own", "version": "v1", "source": str(tmp_path / "mirror/opus")}
    corpus["accept"] = "made-up words"
    own = MINIMAL | experiment_of(tmp_path, published) | {"corpora": [corpus]}
    own["languages"] = ["en", "de", "zh"]
    own["evalsets"] = {name: {"version": "v1"} for name in SETS}
    project.select("own", own)
    report, tables = "results/own/reports/decontamination.json", "results/tables"
    targets = (report, *(f"{tables}/{name}.tex" for name in SETS))
    with ExitStack() as stack:
        for name in SETS:
            folder = published["parquet" if name == "bouquet" else name]
            server = stack.enter_context(hub(folder))
            place = f"ems/benchmarks/{name}/record.yaml"
            project.edit(place, benchmark(name).published, f"{server.address}{REVISION}")
        project.environment |= {"NO_PROXY": "127.0.0.1", "HF_TOKEN": ""}
        output = project.snakemake(*targets, expect=1)
        assert "(401, without a token): open http://127.0.0.1" in output
        project.environment["HF_TOKEN"] = TOKEN
        output = project.snakemake("--printshellcmds", *targets)
    assert TOKEN not in output
    assert TOKEN.encode() not in content(project.folder)
    entries = json.loads((project.folder / report).read_text())["corpora"]
    assert [entry["kept"] for entry in entries] == [30, 30]
    for entry in entries:
        taken = {name: entry["by_benchmark"][name]["pairs"] for name in SETS}
        assert taken == dict.fromkeys(SETS, 20 + DEV)
    for name, columns in (("flores_plus", 3), ("bouquet", 5)):
        path = project.folder / tables / f"{name}.tex"
        rows = csv_rows(path)
        assert [len(row) - 1 for row in rows.values()] == [columns] * len(rows)
        assert [*rows] == ["char-ngram", *(["char-ngram, paragraphs"] if name == "bouquet" else [])]
        assert "BOUQuET v1" in path.with_suffix(".md").read_text() or name == "flores_plus"
        scores = read_score_file(project.folder / f"results/own/scores/char-ngram/{name}.json")
        assert {row.count for row in scores.rows if not row.measure} == {COUNT}
