"""Changed settings: checked, planned by Snakemake without a job, run by it, and trained with."""

from collections.abc import Callable
from typing import Any

from fuzz.stages import COMMANDS
from fuzz.values import NUMBERS, TEXTS, VALUES, Case, as_text, in_bytes, in_tree
from hypothesis import strategies as st
from made.experiments import SCHEMAS, parts_of

# fmt: off
RAW = [
    b"\t", b": ", b"- ", b"{", b"[", b"&a *a", b"!!python/object:os.system x", b"<<: *x", b"\xff",
    b"? ", b"| ", b"%", b"@", b"\x00", b"\xe2\x80\xa8", b"*" * 30, b"a: &a [*a]\n", b"\nseed: 1\n",
]
NAMES = [
    "a b", "$(touch pwned)", ";touch pwned;", "'", '"', "ü", "{x}", "{", "%s", "a&b", "`x`", "-x",
    "*", "~", "#", "a\\b", "a\nb", "..", "../x", "/tmp/../x", "x" * 300, "", " ", "null", "1:",
    "a/b",
]
# fmt: on
TOY, SITE = "configs/toy.yaml", "config.yaml"
Key = tuple[tuple[str, ...], dict[str, Any]]  # the way to a setting, and its schema


def raw_text(path: str) -> st.SearchStrategy:
    """An edit of a YAML file as text."""
    at = st.integers(0, 10_000)
    inserted = st.tuples(st.just("insert"), st.just(path), at, st.sampled_from(RAW).map(as_text))
    return st.one_of(inserted.map(list), in_bytes(path))


def keys() -> dict[str, list[Key]]:
    """Every setting that the schemas of the toy's two files know by name."""
    files = {SITE: SCHEMAS["site"], TOY: SCHEMAS["experiment"]}
    return {
        file: [(way, part) for way, part in parts_of(schema) if way and not {"[]", "x"} & {*way}]
        for file, schema in files.items()
    }


def bounds(schema: dict[str, Any]) -> list[float]:
    """The numbers at, inside and beyond what a setting may be."""
    numbers = [0, 1, 0.5]
    for key, step in (("minimum", 1), ("maximum", -1)):
        limit = schema.get(key, schema.get(f"exclusive{key.capitalize()}"))
        if limit is not None:
            numbers += [limit, limit + step, limit - step, limit + step * 1e-9]
    return numbers


def value_for(schema: dict[str, Any]) -> st.SearchStrategy:
    """A value that a setting may have, or nearly."""
    if "enum" in schema:
        return st.sampled_from([*schema["enum"], *schema["enum"], "x"])
    match schema.get("type"):
        case "integer":
            return st.sampled_from([n for n in bounds(schema) if n == int(n)] * 2 + NUMBERS)
        case "number":
            return st.sampled_from(bounds(schema) * 3 + NUMBERS)
        case "boolean":
            return st.sampled_from([True, False, True, False, None, "yes", 1])
        case "string":
            return st.sampled_from(TEXTS)
    return VALUES


def setting(file: str, keys: list[Key]) -> st.SearchStrategy:
    """An edit that gives one setting a value."""

    @st.composite
    def one(draw: Callable) -> list[Any]:
        way, schema = draw(st.sampled_from(keys))
        odd = draw(st.integers(0, 5)) == 0
        return ["at", file, list(way), draw(VALUES if odd else value_for(schema))]

    return one()


def config_cases(experiments: list[str]) -> st.SearchStrategy:
    """Changed settings, checked by `ems check`."""
    known = keys()

    @st.composite
    def one(draw: Callable) -> Case:
        name = draw(st.sampled_from(experiments))
        file = draw(st.sampled_from([f"configs/{name}.yaml"] * 4 + [SITE]))
        ways = (
            [setting(file, known[SITE if file == SITE else TOY])] * 4
            + [in_tree("yaml", file)] * 2
            + [raw_text(file)]
        )
        way = draw(st.sampled_from(ways))
        edits = draw(st.lists(way, min_size=1 if draw(st.integers(0, 9)) else 0, max_size=2))
        words = ["ems", *draw(st.sampled_from([["check"], ["check"], ["corpora", "list"]]))]
        return {"kind": "configs", "edits": edits, "words": [*words, "--experiment", name]}

    return one()


def planned_cases() -> st.SearchStrategy:
    """Changed settings of the toy, planned by `snakemake -n`."""
    known = keys().items()
    edits = st.one_of(*(st.one_of(setting(*each), in_tree("yaml", each[0])) for each in known))
    return st.lists(edits, min_size=1, max_size=2).map(
        lambda edits: {"kind": "plans", "edits": edits, "words": ["snakemake", "-n", "all"]}
    )


SECTIONS = ("model", "objectives", "train")
SLOW = {"steps", "compile", "device", "grad_cache"}  # of which large values only take long
SMALL = 64  # numbers above it only take memory


def training_cases() -> st.SearchStrategy:
    """Odd settings within and around their bounds, with which the toy is trained."""
    train = next(words for words in COMMANDS if words[1] == "train")
    known = [
        (way, schema)
        for way, schema in keys()[TOY]
        if way[0] in SECTIONS and len(way) > 1 and not SLOW & set(way)
    ]

    @st.composite
    def one(draw: Callable) -> Case:
        edits = []
        for _ in range(draw(st.integers(1, 3))):
            way, schema = draw(st.sampled_from(known))
            value = draw(value_for(schema))
            if not isinstance(value, int) or value <= SMALL:
                edits.append(["at", TOY, list(way), value])
        return {"kind": "trainings", "edits": edits, "words": train}

    return one()


def workflow_cases() -> st.SearchStrategy:
    """Names that a shell, Snakemake or a path takes for more than a name, in a run of some jobs."""
    return st.tuples(st.sampled_from(KINDS_OF_NAMES), st.sampled_from(NAMES)).map(
        lambda drawn: named(*drawn)
    )


KINDS_OF_NAMES = ["data", "data", "source", "source", "experiment", "corpus", "version"]


def named(what: str, name: str) -> Case:
    """The workflow with something of the toy called `name`."""
    corpus = {"name": "Toy", "version": "v1", "source": "mirror/opus"}
    linked, of, outputs, edits = "", "", [], []
    match what:
        case "data":
            edits, outputs = [["at", SITE, ["data"], name]], [name]
        case "source":
            linked, of, corpus["source"] = name, "mirror/opus", name
        case "experiment":
            edits = [["copy", f"configs/{name}.yaml", TOY], ["at", SITE, ["experiment"], name]]
        case "corpus":
            linked, of, corpus["name"] = f"mirror/opus/{name}", "mirror/opus/Toy", name
        case "version":
            linked, of, corpus["version"] = f"mirror/opus/Toy/{name}", "mirror/opus/Toy/v1", name
    if linked.strip("./"):
        edits.append(["link", linked, of])
    edits.append(["at", TOY, ["corpora"], [corpus]])
    results = name if what == "experiment" else "toy"
    words = ["snakemake", f"results/{results}/reports/decontamination.json"]
    return {"kind": "workflows", "edits": edits, "words": words, "outputs": outputs}
