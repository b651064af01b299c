"""Laws of the source: data flows down the list of packages and never back up; a few things are
never done."""

import ast
from pathlib import Path

import pytest
from conftest import ROOT

# What stands further down may import what stands further up, and nothing else of ems.
LAYERS = [
    {"errors", "provenance", "sizes"},
    {"damaged", "shapes", "settings"},
    {"files", "progress", "orphan", "garbage", "torchrun", "batches", "hits"},
    {"languages", "papers"},
    {"outputs", "scores"},
    {"costs", "flags"},
    {"benchmarks", "segmenters"},
    {"config"},
    {"corpora"},
    {"evalsets"},
    {"benchmarks.data", "benchmarks.demo"},
    {"text"},
    {"shards"},
    {"model"},
    {"objectives"},
    {"encode", "retrieval"},
    {"ngrams"},
    {"train"},
    {"bench", "trained"},
    {"mine_documents", "use"},
    {"interop"},
    {"benchmarks.families"},
    {"benchmarks.score"},
    {"tables"},
    {"benchmarks.table"},
    {"export", "follow"},
    {"sources"},
    {"plan", "downloads", "job_modules"},
    {"forecast"},
    {"start"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# A benchmark's folder has a record, light to import, and parts on levels of their own.
PARTS = {name: name for name in ("data", "demo", "score", "table")}
PARTS |= {"reuters": "data", "missed": "table"}
FILES = sorted((ROOT / "ems").rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]
MAX_LINES = 450
NEVER_IMPORTED = {"snakemake", "pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
NEVER_CALLED = {"torch.load", "torch.save", "eval", "exec", "yaml.unsafe_load", "yaml.full_load"}


def imports(text):
    """The modules that a source names, `from ems import x` as "ems.x"; relative ones with dots."""
    modules = []
    tree = ast.parse(text)
    for node in ast.walk(tree):  # what is imported for types alone runs nothing
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "ems" and not node.level:
            modules += [f"ems.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append("." * node.level + (node.module or ""))
    return modules


def part(module):
    """The part of ems that a module belongs to: "text" of ems.text.clean, "cli" of that."""
    first, *_, last = module.split(".")[1:] * 2
    if module.startswith("ems.benchmarks.families."):
        return "benchmarks.families"
    if last == "settings":  # what each package declares to be set stands below all packages
        return last
    inside = first == "benchmarks" and module.count(".") == 3 and last in PARTS
    return f"{first}.{PARTS[last]}" if inside else first


def package(path):
    """The part of a file."""
    return part(".".join(Path(path).with_suffix("").parts).removesuffix(".__init__"))


def wrong_ways(own, text):
    """The modules of ems that a file of the part `own` must not import."""
    parts = [part(name) for name in imports(text) if name.startswith("ems.")]
    return [name for name in parts if name != own and LEVEL[name] >= LEVEL[own]]


def only_weights(call):
    """Whether a call is `torch.load(..., weights_only=True)`, which runs no code of the file."""
    words = {word.arg: ast.unparse(word.value) for word in call.keywords}
    return ast.unparse(call.func) == "torch.load" and words.get("weights_only") == "True"


def forbidden(text):
    """What a source does that ems never does."""
    names = [name for name in imports(text) if name.split(".")[0] in NEVER_IMPORTED]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            names.append("bare except")
        if isinstance(node, ast.Call):
            if ast.unparse(node.func) in NEVER_CALLED and not only_weights(node):
                names.append(ast.unparse(node.func))
            names += [word.arg for word in node.keywords if word.arg == "allow_pickle"]
    return names


def test_every_part_of_ems_has_its_place_in_the_list():
    assert {package(name) for name in NAMES if name != "ems/__init__.py"} == set(LEVEL)


@pytest.mark.parametrize("name", NAMES)
def test_a_part_imports_only_from_parts_above_it_and_does_nothing_forbidden(name):
    """No import is relative: the hash of a stage follows absolute ones."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name != "ems/__init__.py":
        assert wrong_ways(package(name), text) == []
    assert not [module for module in imports(text) if module.startswith(".")]
    assert forbidden(text) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_short_and_opens_with_what_it_does(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_LINES
    assert ast.get_docstring(ast.parse(text))


FORBIDDEN = {  # a source -> what ems never does in it
    "from snakemake.utils import x\nimport pickle": ["snakemake.utils", "pickle"],
    "try:\n    f()\nexcept:\n    pass\n": ["bare except"],
    "import torch\ntorch.load('x')": ["torch.load"],
    "import torch\ntorch.load('x', weights_only=False)": ["torch.load"],
    "import torch\ntorch.load('x', weights_only=True)": [],
    "np.load('x', allow_pickle=True)": ["allow_pickle"],
}


def test_the_checks_of_this_file_see_what_they_look_for():
    inside = "def f():\n    from ems.train.loop import train\n    from ems.commands import cli\n"
    assert wrong_ways("text", inside + "import ems.base.errors, ems.text.tsv") == ["train", "cli"]
    assert wrong_ways("retrieval", "import ems.model.encode") == ["encode"]  # not sideways either
    scores = "import ems.benchmarks.xnli.score"
    assert wrong_ways("benchmarks.data", scores) == ["benchmarks.score"]
    assert wrong_ways("benchmarks.table", f"{scores}, ems.benchmarks.xnli") == []
    assert package("ems/benchmarks/bucc2018/missed.py") == "benchmarks.table"
    assert package("ems/benchmarks/mldoc/__init__.py") == "benchmarks"
    typed = "if TYPE_CHECKING:\n    import ems.commands.cli\n"
    assert wrong_ways("text", typed) == []
    assert imports("from . import x\nfrom .y import z") == [".", ".y"]
    assert {text: forbidden(text) for text in FORBIDDEN} == FORBIDDEN
    assert [name for name in NAMES if "torch.load(" in (ROOT / name).read_text()] == [
        "ems/model/released.py"  # the authors' checkpoint, in a step of its own
    ]
    assert len(FILES) > 40
    edges = [m for path in FILES for m in imports(path.read_text(encoding="utf-8"))]
    assert sum(m.startswith("ems.") for m in edges) > 100
