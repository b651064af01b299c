"""Laws of the hashes: one changes when what a job reads does, and only then."""

import ast
import io
import tokenize
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from made import golden
from made.experiments import BASES, REAL, SHIPPED, Settings, changed_jobs, edited, hashes, shipped

from ems.base import provenance as source
from ems.config import languages as opus
from ems.config.plugins import benchmarks
from ems.workflow.jobs import bench_modules, demo_modules, evalkeys_modules, table_modules


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr("ems.workflow.plan.check_programs", lambda *_: None)  # trust any filter
    return Settings(tmp_path, REAL)


# --- hashes of settings

PLACES = ("NTREX de-en", "NTREX en-ja", "Tatoeba de-en", "Tatoeba en-ja")
CLEAN, SEGMENT = ({f"{stage} {place}" for place in PLACES} for stage in ("clean", "segment"))
MULTIWAY = REAL | {
    "languages": ["en", "de", "fr", "ja"],
    "corpora": [{"name": name, "version": "v1", "source": "nowhere"} for name in ("One", "Two")],
    "multiway": {"through": "en"},
}
MINE = {"name": "Mine", "files": {"de-ja": "x.tsv"}, "codes": {"de": ["a"], "ja": ["b"]}}
OWN = REAL | {"corpora": [*REAL["corpora"], MINE]}
OWN |= {"languages": ["en", "de", "ja", {"code": "xq", "tatoeba_v1": "xqq"}]}
BEFORE = {key: BASES[key] for key in ("real", "divided", "narrowed", "opus", "documents")}
BEFORE |= {"multiway": MULTIWAY, "own": OWN}


@pytest.mark.parametrize("name", BEFORE)
def test_an_edit_changes_the_hash_of_the_jobs_that_read_it_and_of_no_other(project, name):
    """tests/golden/hashes/: an edit, and the jobs that run again after it."""

    def rerun(line):
        after = BEFORE[name]
        for key, value in yaml.safe_load(line.replace("ROOT", str(ROOT))).items():
            after = edited(after, key, value)
        jobs = changed_jobs(project, BEFORE[name], after)
        return ", ".join(sorted(jobs)) or "nothing"

    golden.replay(f"hashes/{name}.txt", rerun)


def test_the_jobs_of_two_stages_or_pairs_never_share_a_hash_where_their_work_differs(project):
    by_job = hashes(project.load(REAL))
    others = [value for name, value in by_job.items() if name not in SEGMENT]
    assert len(set(others)) == len(others)
    assert not set(others) & {by_job[name] for name in SEGMENT}  # here all have one segmenter


def test_a_hash_does_not_depend_on_the_order_of_the_keys(project):
    turned = dict(reversed(REAL.items()))
    for key in ("model", "validation"):
        turned[key] = dict(reversed(REAL[key].items()))
    assert list(turned["model"]) != list(REAL["model"])
    assert hashes(project.load(turned)) == hashes(project.load(REAL))


def test_what_a_filter_reads_counts_where_it_filters_and_nowhere_else(project, tmp_path):
    """The model's description, which has the sums of its other files, and a program's JSON."""
    model, path = tmp_path / "model", tmp_path / "filter.json"
    model.mkdir()
    changed = []
    for command in ("cat", "head"):
        (model / "model.json").write_text(command)
        path.write_text(f'{{"type": "bilingual", "command": "{command}", "parameters": {{}}}}')
        similarity = {"model": str(model), "corpora": ["Tatoeba"]}
        commands = [{"filter": str(path), "corpora": ["NTREX"]}]
        clean = {"similarity": similarity, "commands": commands}
        changed.append(hashes(project.load(REAL | {"clean": clean})))
    assert {name for name in changed[0] if changed[0][name] != changed[1][name]} == CLEAN


# --- hashes of the source


def of(*modules):
    root = source.source_root()
    paths = {path for module in modules for path in source.source_files(module)}
    return {str(path.relative_to(root)) for path in paths}


def of_benchmarks(*modules):
    files = [Path(name).parts[1:] for name in of(*modules) if name.startswith("benchmarks/")]
    return {"/".join(parts) for parts in files if len(parts) > 1}


def test_the_source_of_a_stage_is_what_it_imports_and_nothing_else():
    train, tables = of("ems.train.job"), of("ems.tables")
    assert {"train/job.py", "model/encoder.py", "model/objectives/fused.py"} <= train
    rooms = {"base", "bench", "model", "shards", "text", "train"}  # of settings the values count
    assert {name.split("/")[0] for name in train} == rooms
    assert not train & {"base/errors.py", "base/progress.py"}
    assert any(name.startswith("tables/printed/") and name.endswith(".csv") for name in tables)
    assert not any(name.startswith(("train/", "model/")) for name in tables)


def test_no_stage_depends_on_the_counts_of_opus_but_on_the_files_that_they_make_it_read(
    project, monkeypatch
):
    before = hashes(project.load(REAL))
    known = {name: opus.OpusFile(1, 1) for name in ("de-en", "de_at-en", "en-ja")}
    monkeypatch.setattr(opus, "opus_files", lambda *_: known)
    monkeypatch.setattr(opus, "_codes_of_release", lambda *_: ())
    assert hashes(project.load(REAL)) == before  # other counts, the same files
    german = {"de": ("de_at", "de")}
    monkeypatch.setattr(
        opus, "opus_codes", lambda corpus, version, code, paper: german.get(code, (code,))
    )
    after = hashes(project.load(REAL))
    assert {name for name in before if before[name] != after[name]} == {
        name for name in CLEAN if "de-en" in name
    }


STAGES = ["train.job", "text.clean", "text.bulk", "shards.writer", "model.encode"]
OF_BENCHMARKS = [  # modules of a job, their files in the folders of benchmarks
    (
        evalkeys_modules(["xnli", "tatoeba", "rcv2"]),
        "xnli/data.py tatoeba/data.py rcv2/data.py mldoc/data.py",
    ),
    (
        bench_modules("counterfactual", "char-ngram"),
        "counterfactual/data.py families/classification.py",
    ),
    (bench_modules("flores200", "encoder"), "flores200/data.py flores200/score.py"),
    (table_modules("sib200"), "sib200/__init__.py sib200/table.yaml"),
    (table_modules("bucc_missed"), "bucc2018/__init__.py bucc2018/table.py bucc2018/table.yaml"),
    (table_modules("corpora"), ""),
    ([f"ems.{module}" for module in STAGES], ""),
]


@pytest.mark.parametrize(("modules", "files"), OF_BENCHMARKS, ids=str)
def test_a_job_depends_on_the_parts_of_a_benchmark_that_it_runs_and_on_no_other(modules, files):
    assert of_benchmarks(*modules) == set(files.split())


@pytest.mark.parametrize("name", benchmarks())
def test_no_scoring_depends_on_a_table_a_record_a_demo_or_the_units_of_a_download(name):
    modules = bench_modules(name, "char-ngram")
    assert not [file for file in of(*modules) if file.startswith("tables/")]
    ends = ("table.py", "table.yaml", "demo.py", "units.tsv", "__init__.py")
    assert not [file for file in of_benchmarks(*modules) if file.endswith(ends)]


def test_a_figure_depends_on_its_table_and_the_demo_on_demos_alone():
    assert "tatoeba/table.py" in of_benchmarks(*table_modules("tatoeba"))
    modules = of_benchmarks(*demo_modules())
    assert {"xnli/demo.py", "counterfactual/demo.yaml"} <= modules
    assert {name.partition("/")[2].partition(".")[0] for name in modules} == {"demo"}


def forget():
    for value in vars(source).values():
        getattr(value, "cache_clear", lambda: None)()


@pytest.fixture
def forgetful():
    forget()
    yield
    forget()


@pytest.fixture
def hash_of(forgetful, tmp_path, monkeypatch):
    """A function that writes files of a little `ems`, and returns the hash of its stage `a`."""
    monkeypatch.setattr(source, "source_root", lambda: tmp_path)

    def write(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        forget()
        return source.source_hash("ems.a")

    return write


IMPORTS = {
    "from ems.a import b": "ems.a b",
    "import os, ems.a": "ems.a",
    "if x:\n    from ems.a import (\n        b,  # (why)\n        c,\n    )": "ems.a b, ems.a c",
    "from ems.a import \\\n    b": "ems.a b",
    "x = 1; import ems.a": "ems.a",
    "if x: from ems.a import b": "ems.a b",
    "from ems import a, errors": "ems a, ems errors",
}


@pytest.mark.parametrize(("text", "expected"), IMPORTS.items())
def test_an_import_is_seen_wherever_it_stands(text, expected):
    imports = source.scan(f'"""Words."""\n\n{text}\n').imports
    assert ", ".join(f"{module} {name}".strip() for module, name in imports) == expected


DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def tokens(text, without=(), comments=False):
    """The words of a source: no layout, nothing that starts at a place in `without`."""
    every = tokenize.generate_tokens(io.StringIO(text).readline)
    skipped = LAYOUT - ({tokenize.COMMENT} if comments else set())
    return [each.string for each in every if each.type not in skipped and each.start not in without]


@pytest.mark.slow
def test_a_scanned_file_lacks_comments_and_docstrings_alone_and_no_import_is_missed():
    for path in sorted((ROOT / "ems").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes, imports = list(ast.walk(ast.parse(text))), set()
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                imports |= {(node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                imports |= {(alias.name, "") for alias in node.names}
        ours = {each for each in imports if each[0].split(".")[0] == "ems"}
        assert set(source.scan(text).imports) == ours, path
        documented = [node for node in nodes if isinstance(node, DOCUMENTED)]
        prose = [node.body[0] for node in documented if ast.get_docstring(node) is not None]
        code = source.without_prose(text)
        places = {(node.lineno, node.col_offset) for node in prose}
        left, right = tokens(code.replace("\0", "\n"), comments=True), tokens(text, places)
        assert left == right, path


@pytest.mark.usefixtures("forgetful")
def test_a_module_of_the_project_is_source_as_one_of_ems_is(tmp_path, monkeypatch):
    folder = tmp_path / "extensions" / "benchmarks" / "toy"
    folder.mkdir(parents=True)
    (folder / "score.py").write_text("import ems.benchmarks.toy.data\n")
    (folder / "data.py").write_text("import ems.base.errors\n")
    (folder / "score.tsv").write_text("of score.py\n")
    (folder / "units.tsv").write_text("of the fetcher\n")
    (folder.parent / "toy.tsv").write_text("has the name of the folder\n")
    monkeypatch.chdir(tmp_path)
    names = {path.name for path in source.source_files("ems.benchmarks.toy.score")}
    assert names == {"score.py", "data.py", "score.tsv"}
    assert folder / "score.py" in source.source_files("ems.benchmarks.toy")
    before = source.source_hash("ems.benchmarks.toy.score")
    (folder / "data.py").write_text("import ems.base.errors\nadded = 1\n")
    forget()
    assert source.source_hash("ems.benchmarks.toy.score") != before


FILES = {  # of a little `ems` whose stage `a` reaches b, c and d, but not e
    "__init__.py": "",
    "errors.py": "class E: ...\n",
    "progress.py": "import ems.base.errors\n",
    "a/__init__.py": "",
    "a/one.py": "from ems.b import thing\nfrom ems.base.errors import E\n",
    "a/table.tsv": "x\ty\n",
    "a/data/deep.csv": "1\n",
    "a/notes.md": "about\n",
    "a/known.tsv.xz": "1\n",
    "a/inside/__init__.py": "",  # a package of its own
    "a/inside/own.tsv": "1\n",
    "b.py": "def f():\n    from ems.c import three\n    from ems import d\n",
    "c/__init__.py": "",
    "c/three.py": "import numpy\nimport ems.a.one\n",
    "c/four.py": "",
    "d.py": "from ems.base.progress import p\n",
    "e.py": "import ems.a\n",
}
REACHED = {"a/__init__.py", "a/one.py", "a/table.tsv", "a/data/deep.csv", "b.py", "d.py"}
REACHED |= {"c/three.py"}  # as `from package import module` asks for it


@pytest.mark.parametrize("name", [*FILES, "a/new.py"])
def test_one_more_byte_or_file_changes_the_hash_of_the_stages_that_reach_it(hash_of, name):
    before = hash_of(FILES)
    assert of("ems.a") == REACHED
    assert hash_of({}) == before
    after = hash_of({name: FILES.get(name, "") + "added = 1\n"})
    assert (after != before) == (name in {*REACHED, "a/new.py"})


EDITED = {  # of b.py: another text -> whether the stage runs again
    '# a\ndef f():  # b\n    return g(1)\n\n\n\ndef g(x):\n    "C."\n    return x   \n': False,
    '"""Words."""\n\ndef f():\n    return g(1)\n\ndef g(x):\n    return x': False,
    "def g(x):\n    return x\n\ndef f():\n    return g(1)\n": False,  # the other way round
    "from ems.c import g\n\ndef f():\n    return g(1)\n": False,  # moved to c
    "def f():\n    return g(1)\n\n@cache\ndef g(x):\n    return x\n": True,
    "def f():\n    return g(2)\n\ndef g(x):\n    return x\n": True,  # a constant
    "def f():\n    return g(1)\n\ndef g(x):\n    return 'x'\n": True,
    "def f():\n    return g(1)\n": True,
    "from math import floor as g\ndef f():\n    return g(1)\n\ndef g(x):\n    return x\n": True,
}


def test_a_decorator_belongs_to_what_it_decorates():
    one = "@cache\n@traced(\n    1\n)\ndef f(): ..."
    statements = source.scan(f"{one}\n\ndef g(): ...\nfrom ems.a import b\n").statements
    assert statements == {one, "def g(): ..."}


@pytest.mark.parametrize("text", EDITED)
def test_words_and_the_file_of_a_function_count_for_nothing_but_what_it_does(hash_of, text):
    function = "\ndef g(x):\n    return x\n"
    one = {"a.py": "import ems.b\nimport ems.c\n", "c.py": "C = 1\n"}
    before = hash_of({**one, "b.py": f"def f():\n    return g(1)\n{function}"})
    moved = {"c.py": f"C = 1\n{function}"} if text.startswith("from ems.c") else {}
    assert (hash_of({"b.py": text, **moved}) != before) == EDITED[text]


def test_a_name_of_any_bytes_has_a_hash():
    assert source.digest("\udcff") != source.digest("\udcfe")  # what os.fsdecode makes of them


def test_the_hashes_of_the_shipped_experiments_stay_as_they_are():
    """A finished model is trained again where the hash of its training changes."""
    digests = [source.digest(list(hashes(shipped(name)).values())) for name in SHIPPED]
    golden.check("hashes/shipped.txt", "".join(map("{} {}\n".format, SHIPPED, digests)))
