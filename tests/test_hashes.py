"""Laws of the hashes: one changes when what a job reads does, and only then."""

from pathlib import Path

import pytest
from conftest import ROOT
from experiments_made import REAL, Settings, edited, shipped

from ems.benchmarks import benchmarks
from ems.config import opus as config_opus
from ems.config import provenance as source
from ems.config import stage_hash
from ems.job_modules import (
    bench_modules,
    demo_modules,
    evalkeys_modules,
    figure_modules,
    table_modules,
)
from ems.languages import opus


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, REAL)


# --- hashes of settings

TATOEBA, NTREX = "Tatoeba v2021-08-07", "NTREX v1"
JOBS = {
    "evalkeys": ("evalkeys", {}),
    **{
        f"clean {corpus.split()[0]} {pair}": (
            "clean",
            {"label": corpus.split()[0], "version": corpus.split()[1], "pair": pair},
        )
        for corpus in (TATOEBA, NTREX)
        for pair in ("de-en", "en-ja")
    },
    "segment de-en": ("segment", {"pair": "de-en"}),
    "segment en-ja": ("segment", {"pair": "en-ja"}),
    "vocabulary": ("vocabulary", {"vocabulary": "shared"}),
    "shards": ("shards", {}),
    "train a": ("train", {"system": "a"}),
    "train b": ("train", {"system": "b"}),
    "bench a": ("bench", {"system": "a", "benchmark": "tatoeba"}),
    "bench b": ("bench", {"system": "b", "benchmark": "tatoeba"}),
    "bench ngram": ("bench", {"system": "ngram", "benchmark": "tatoeba"}),
    "tables": ("tables", {}),
}
CLEAN = {name for name in JOBS if name.startswith("clean")}
TRAIN = {"train a", "train b", "bench a", "bench b"}
BENCH = {"bench a", "bench b", "bench ngram"}
OF_B = {"train b", "bench b"}
EDITS = [
    ("description", "another", set()),
    ("seed", 2, CLEAN | {"vocabulary"} | TRAIN),
    ("sources", {"opus": "elsewhere"}, set()),
    ("corpora.0.max_pairs", 5, {name for name in CLEAN if "Tatoeba" in name}),
    ("validation.max_pairs", 5, {name for name in CLEAN if "NTREX" in name}),
    ("corpora", [REAL["corpora"][0], {"name": "NusaX", "version": "v1"}], set()),
    ("corpora", [{"name": "NusaX", "version": "v1"}, REAL["corpora"][0]], set()),
    ("decontaminate.key", "plain", {"evalkeys"} | CLEAN),
    ("decontaminate.scope", "pair", {"evalkeys"} | CLEAN),
    ("decontaminate.against", [], {"evalkeys"} | CLEAN),
    ("clean.identical", "drop", CLEAN),
    ("clean.max_ratio", 9, CLEAN),
    ("clean.format_characters", "drop", {"evalkeys"} | CLEAN | TRAIN),
    ("evalsets.tatoeba.version", "v2", {"evalkeys"} | BENCH),
    ("evalsets.tatoeba.languages", ["ja"], {"evalkeys"} | BENCH),
    ("segmenters.ja", "fugashi", {"segment en-ja"} | TRAIN),
    ("segmenters.default", "sacremoses", {"segment de-en", "segment en-ja"} | TRAIN),
    ("languages", ["en", "de", "ja", "fr"], {"evalkeys", "vocabulary"} | TRAIN | BENCH),
    ("languages", ["en", "ja", "de"], {"vocabulary"} | TRAIN),
    (
        "languages",
        ["en", "ja", {"code": "de", "tatoeba_v1": "gsw"}],
        {"evalkeys", "vocabulary"} | TRAIN | BENCH,
    ),
    ("vocabulary.size", 600, {"vocabulary"}),
    ("vocabulary.temperature", 2, {"vocabulary"}),
    ("vocabulary.byte_fallback", True, {"vocabulary"}),
    ("model.dropout", 0.2, TRAIN),
    ("model.layers", 3, TRAIN - OF_B),  # b has its own
    ("objectives.xtr", {"weight": 0.5}, TRAIN),
    ("train.steps", 11, TRAIN),
    ("systems.b.model.layers", 2, OF_B),
    ("systems.b.train", {"batch_pairs": 4}, OF_B),
    ("systems.c", {}, {"tables"}),
    ("systems.b.train", {"seed": 1}, OF_B),  # said, even if it is what it would be
    ("systems.b.train", {"precision": "bfloat16"}, OF_B),
    ("tables.printed", ["EMS"], {"tables"}),
    ("tables.systems", ["a"], {"tables"}),
    (
        "sweep",
        {"base": "a", "axes": {"model.layers": [6, 2]}},
        {"tables"},
    ),
    ("splits", {"Other": {"documents": "d", "parts": {"a": 0.5, "b": 0.5}}}, set()),
    # what is the default anyway
    ("model.layers", 6, set()),
    ("decontaminate.key", "folded", set()),
    ("train.schedule", "constant", set()),
    ("corpora.0.languages", ["de", "ja"], set()),
    ("corpora.0.without", ["fr"], set()),
    ("evalsets.tatoeba.languages", "experiment", set()),
    ("evalsets.tatoeba.languages", ["ja", "de"], set()),
    ("train.precision", "float32", set()),
    ("train.tensorboard", False, set()),
    ("clean", {"undecodable": "error", "format_characters": "keep", "max_words": 0}, set()),
    ("vocabulary.byte_fallback", False, set()),
]


def hashes(experiment):
    return {name: stage_hash(experiment, job, **names) for name, (job, names) in JOBS.items()}


@pytest.mark.parametrize(("path", "new", "changed"), EDITS)
def test_an_edit_changes_the_hash_of_the_jobs_that_read_it_and_of_no_other(
    project, path, new, changed
):
    before = hashes(project.load(REAL))
    after = hashes(project.load(edited(REAL, path, new)))
    assert {name for name in JOBS if before[name] != after[name]} == changed


def test_a_file_code_of_an_own_language_counts_for_what_reads_the_files(project):
    def load(code):
        own = {"code": "xq", "tatoeba_v1": code}
        return project.load(edited(REAL, "languages", ["en", "de", "ja", own]))

    one, other = hashes(load("xqq")), hashes(load("xqr"))
    assert {name for name in JOBS if one[name] != other[name]} == {"evalkeys"} | BENCH


def test_a_corpus_that_changes_its_role_is_cleaned_again_for_its_report(project):
    swapped = edited(REAL, "corpora", [REAL["validation"]])
    swapped = edited(swapped, "validation", REAL["corpora"][0])
    before, after = hashes(project.load(REAL)), hashes(project.load(swapped))
    assert {name for name in JOBS if before[name] != after[name]} == CLEAN


def test_the_jobs_of_two_stages_or_pairs_never_share_a_hash_where_their_work_differs(project):
    found = hashes(project.load(REAL))
    same = {"segment de-en", "segment en-ja"}  # both pairs have the same two segmenters here
    others = [value for name, value in found.items() if name not in same]
    assert len(set(others)) == len(others)
    assert not set(others) & {found[name] for name in same}


def test_a_hash_does_not_depend_on_the_order_of_the_keys(project):
    turned = dict(reversed(REAL.items()))
    for key in ("model", "validation"):
        turned[key] = dict(reversed(REAL[key].items()))
    assert list(turned["model"]) != list(REAL["model"])
    assert hashes(project.load(turned)) == hashes(project.load(REAL))


# --- hashes of the source


def of(*modules):
    root = source.source_root()
    paths = {path for module in modules for path in source.source_files(module)}
    return {str(path.relative_to(root)) for path in paths}


def of_benchmarks(*modules):
    """The files in the folders of benchmarks that the source of some modules has."""
    files = [Path(name).parts[1:] for name in of(*modules) if name.startswith("benchmarks/")]
    return {"/".join(parts) for parts in files if len(parts) > 1}


def test_the_source_of_training_is_what_it_imports_and_nothing_else():
    files = of("ems.train")
    assert {
        "train/job.py",
        "train/step.py",
        "model/encoder.py",
        "objectives/xtr.py",
        "objectives/fused.py",
        "shards/reader.py",
        "config/__init__.py",
        "languages/languages.tsv",
    } <= files
    folders = {name.split("/")[0] for name in files}
    assert not folders & {"tables", "bench", "corpora", "cli.py", "errors.py", "progress.py"}


def test_the_source_of_the_tables_holds_the_printed_numbers():
    files = of("ems.tables")
    assert any(name.startswith("tables/printed/") and name.endswith(".csv") for name in files)
    assert not any(name.startswith(("train/", "model/")) for name in files)


def test_no_stage_depends_on_the_counts_of_opus_but_on_the_files_that_they_make_it_read(
    project, monkeypatch
):
    root = source.source_root()
    for stage in ("text.clean", "shards.writer", "train", "bench"):
        files = of(f"ems.{stage}")
        assert "languages/opus.py" in files
        assert {f"languages/{name}" for name in ("languages.tsv", "opus_codes.tsv")} <= files
        assert not {"languages/opus.tsv"} & files
        assert (root / "languages" / "opus.tsv").is_file()
    before = hashes(project.load(REAL))
    known = {name: opus.OpusFile(1, 1) for name in ("de-en", "de_at-en", "en-ja")}
    monkeypatch.setattr(config_opus, "opus_files", lambda *_: known)
    assert hashes(project.load(REAL)) == before  # other counts, the same files
    german = {"de": ("de_at", "de")}
    monkeypatch.setattr(config_opus, "opus_codes", lambda _, code, paper: german.get(code, (code,)))
    after = hashes(project.load(REAL))
    assert {name for name in JOBS if before[name] != after[name]} == {
        name for name in CLEAN if "de-en" in name
    }


def test_decontamination_depends_on_how_its_sets_are_read_and_on_no_more_of_them():
    expected = {"xnli/data.py", "tatoeba/data.py", "rcv2/data.py", "mldoc/reuters.py"}
    assert of_benchmarks(*evalkeys_modules(["xnli", "tatoeba", "rcv2"])) == expected


def test_scoring_depends_on_data_protocol_and_family_and_on_no_table_or_other_benchmark():
    modules = bench_modules("counterfactual", "char-ngram")
    assert of_benchmarks(*modules) == {"counterfactual/data.py", "families/classification.py"}
    flores = {"flores200/data.py", "flores200/score.py"}
    assert of_benchmarks(*bench_modules("flores200", "encoder")) == flores
    for name in benchmarks():
        files = of(*bench_modules(name, "char-ngram"))
        assert not [file for file in files if file.startswith("tables/")]
        ends = ("table.py", "demo.py", "units.tsv")
        own = of_benchmarks(*bench_modules(name, "char-ngram"))
        assert not [file for file in own if file.endswith((*ends, "__init__.py"))]


def test_a_table_depends_on_its_declaration_and_its_words_and_on_no_protocol():
    assert of_benchmarks(*table_modules("sib200")) == {"sib200/__init__.py", "sib200/table.py"}
    bucc = {"bucc2018/__init__.py", "bucc2018/table.py", "bucc2018/missed.py"}
    assert of_benchmarks(*table_modules("bucc_missed")) == bucc
    assert "tatoeba/table.py" in of_benchmarks(*figure_modules("tatoeba"))
    assert of_benchmarks(*table_modules("corpora")) == set()


def test_training_and_cleaning_depend_on_no_benchmark_and_the_demo_on_their_demos():
    stages = ("ems.train", "ems.text.clean", "ems.text.bulk", "ems.shards.writer", "ems.encode")
    assert of_benchmarks(*stages) == set()
    found = of_benchmarks(*demo_modules())
    assert {"xnli/demo.py", "counterfactual/demo.yaml"} <= found
    assert {name.partition("/")[2].partition(".")[0] for name in found} == {"demo"}


def test_a_module_of_the_project_is_source_as_one_of_ems_is(tmp_path, monkeypatch):
    folder = tmp_path / "extensions" / "benchmarks" / "toy"
    folder.mkdir(parents=True)
    (folder / "score.py").write_text("import ems.benchmarks.toy.data\n")
    (folder / "data.py").write_text("import ems.errors\n")
    (folder / "score.tsv").write_text("of score.py\n")
    (folder / "units.tsv").write_text("of the fetcher\n")
    monkeypatch.chdir(tmp_path)
    source.source_files.cache_clear()
    names = {path.name for path in source.source_files("ems.benchmarks.toy.score")}
    assert names == {"score.py", "data.py", "score.tsv"}
    before = source.source_hash.__wrapped__("ems.benchmarks.toy.score")
    (folder / "data.py").write_text("import ems.damaged\n")
    source.source_files.cache_clear()
    assert source.source_hash.__wrapped__("ems.benchmarks.toy.score") != before
    source.source_files.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A little `ems` whose stage `a` reaches b, c and d, but not e."""
    files = {
        "__init__.py": "",
        "errors.py": "class E: ...\n",
        "progress.py": "import ems.errors\n",
        "a/__init__.py": "",
        "a/one.py": "from ems.b import thing\nfrom ems.errors import E\n",
        "a/table.tsv": "x\ty\n",
        "a/data/deep.csv": "1\n",
        "a/notes.md": "about\n",
        "a/known.tsv": "1\n",
        "a/inside/__init__.py": "",
        "a/inside/own.tsv": "1\n",
        "b.py": "def f():\n    from ems.c import three\n    from ems import d\n",
        "c/__init__.py": "",
        "c/three.py": "import numpy\nimport ems.a.one\n",
        "c/four.py": "",
        "d.py": "from ems.progress import p\n",
        "e.py": "import ems.a\n",
    }
    for name, text in files.items():
        path = tmp_path / "ems" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(source, "source_root", lambda: tmp_path / "ems")
    monkeypatch.setattr(source, "PLANNED", {"a/known.tsv"})
    source.source_files.cache_clear()
    source.source_hash.cache_clear()
    yield tmp_path / "ems"
    source.source_files.cache_clear()
    source.source_hash.cache_clear()


def hash_after(package, name, text):
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    (package / name).write_text(text)
    source.source_files.cache_clear()
    source.source_hash.cache_clear()
    return source.source_hash("ems.a")


def test_the_source_is_found_by_following_the_imports(package):
    reached = {"a/__init__.py", "a/one.py", "a/table.tsv", "a/data/deep.csv", "b.py", "d.py"}
    reached |= {"c/__init__.py", "c/three.py", "c/four.py"}
    assert of("ems.a") == reached


@pytest.mark.parametrize("name", ["a/one.py", "a/table.tsv", "a/data/deep.csv", "b.py", "d.py"])
def test_one_changed_byte_of_what_a_stage_reaches_changes_its_hash(package, name):
    before = source.source_hash("ems.a")
    text = (package / name).read_text()
    assert hash_after(package, name, text + "\n") != before
    assert hash_after(package, name, text) == before


NOT_REACHED = ["e.py", "errors.py", "progress.py", "a/notes.md", "a/known.tsv"]
NOT_REACHED += ["a/inside/__init__.py", "a/inside/own.tsv"]  # a package of its own


@pytest.mark.parametrize("name", NOT_REACHED)
def test_what_a_stage_does_not_reach_does_not_change_its_hash(package, name):
    before = source.source_hash("ems.a")
    assert hash_after(package, name, "X = 1\n") == before


def test_a_new_file_of_a_reached_package_changes_the_hash(package):
    before = source.source_hash("ems.a")
    assert hash_after(package, "a/two.py", "") != before


def test_a_name_of_any_bytes_has_a_hash():
    names = [b"\xff".decode("utf-8", "surrogateescape"), b"\xfe".decode("utf-8", "surrogateescape")]
    assert len({source.digest(name) for name in names}) == 2


PINNED = {
    "demo-full": "fc87c2d72992056f",
    "demo": "e39fbddb57861b6f",
    "ems62": "49e92ba9c85d6f2d",
    "lightweight-small": "ed0ac55918a9733f",
    "lightweight": "6092c0ad646066a9",
    "small5": "29e16ea587fea879",
    "small62": "8a6d6bf5f68b9f76",
    "starter": "061a35a85724096c",
    "tiny": "70eaca18b1776e48",
}


def test_the_hashes_of_the_shipped_experiments_stay_as_they_are():
    """A finished model is trained again where the hash of its training changes."""
    found = {}
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        experiment = shipped(path.stem)
        hashes = [stage_hash(experiment, stage) for stage in ("evalkeys", "shards", "tables")]
        for name in experiment.vocabularies:
            hashes.append(stage_hash(experiment, "vocabulary", vocabulary=name))
        for _, corpus in experiment.all_corpora():
            names = {"label": corpus.label, "version": corpus.version}
            for pair in corpus.pairs:
                hashes.append(stage_hash(experiment, "clean", pair=pair, **names))
                hashes.append(stage_hash(experiment, "segment", pair=pair))
        for system, settings in experiment.systems.items():
            if settings.trained:
                hashes.append(stage_hash(experiment, "train", system=system))
            for benchmark in experiment.benchmarks:
                names = {"system": system, "benchmark": benchmark}
                hashes.append(stage_hash(experiment, "bench", **names))
        found[path.stem] = source.digest(hashes)
    assert found == PINNED
