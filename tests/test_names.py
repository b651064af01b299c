"""Laws of names and places: what a path or a command is made of can be nothing but a name.

Bad names on the command line are in tests/refused/commands.yaml.
"""

import copy

import pytest
from conftest import Project
from made.experiments import REAL, SCHEMAS, SITE, Settings, edited, one_line, parts_of

from ems.base.schema import checked
from ems.config.file import experiment_model, site_model

EVIL = ["..", ".", ".a", "-x", "_a", "a/b", "../../x", "/a", "a b", "a;b", "$(touch pwned)"]
EVIL += ["`a`", "a'b", 'a"b', "a%b", "{x}", "a\nb", "\na", "a\n", "a\r", "a\0", "a\\", "ü", ""]
WORDS = "expected letters, digits, `.`, `_` and `-`, starting with a letter or digit"
OWN = {"name": "Own", "version": "v1", "source": "somewhere", "part": "train"}
SPLITS = {"Own": {"documents": "ids.tsv", "parts": {"train": 0.5, "test": 0.5}}}
SPLITS |= {"Other": {"first": {"validation": 10}, "rest": "train"}}
BASE = edited(edited(REAL, "corpora.0", OWN), "splits", SPLITS)
BASE = edited(BASE, "languages", ["en", "de", "ja", {"code": "xq", "tatoeba_v1": "xqq"}])
BASE = edited(BASE, "corpora.0.codes", {"de": ["de_AT", "de"]})
BASE = edited(BASE, "vocabularies.shorter", {"languages": ["en", "de"]})


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def mistake(value, model=experiment_model):
    return one_line(checked, model(), value, "mine.yaml")


def renamed(value, path, new):
    """A copy of `value` in which the last key of the dotted `path` is called `new`."""
    *front, last = path.split(".")
    value = at = copy.deepcopy(value)
    for key in front:
        at = at[key]
    at[new] = at.pop(last)
    return value


# --- names

PATHS = ["corpora.0.name", "validation.name", "splits.Own.documents"]
PATHS += ["corpora.0.version", "validation.version", "evalsets.tatoeba.version"]
KEYS = ["splits.Own", "vocabularies.shorter", "systems.b"]
PARTS = ["splits.Own.parts.test", "splits.Other.first.validation"]
CODES = ["languages.3.tatoeba_v1", "languages.3.flores200", "corpora.0.codes.de.1"]
ANY = f"found {{!r}}, {WORDS}"
PART = "found {!r}, expected small letters (a to z), at most 30 characters"
CODE = "letters and `_`, starting with a letter, at most 20 characters"
BAD = {  # the key -> what its line says of a bad name, and the names that only such a key refuses
    **{path: (f"mine.yaml: {path}: {ANY}", ["a" * 101]) for path in [*PATHS, "experiment"]},
    **{path: (f"mine.yaml: {path.partition('.')[0]}: {ANY}", ["a" * 101]) for path in KEYS},
    **{path: (PART, ["A", "a1", "a" * 31]) for path in PARTS},
    "splits.Other.rest": (f"splits.Other.rest: {PART}", ["A", "a1", "a" * 31]),
    **{path: (f"{path}: found {{!r}}, expected {CODE}", ["a1", "a.b", "a" * 21]) for path in CODES},
    "languages.3.code": ("found {!r}, expected small " + CODE, ["a1", "a.b", "a" * 21]),
}


@pytest.mark.parametrize("path", BAD)
def test_a_bad_name_is_one_line_that_says_what_a_name_is(path):
    message, more = BAD[path]
    for name in EVIL + more:
        if path == "experiment":
            line = mistake({**SITE, path: name}, site_model)
        elif name or path not in CODES:  # a language may have none
            line = mistake((renamed if path in {*KEYS, *PARTS} else edited)(BASE, path, name))
        assert message.format(name) in line or (not name and path in CODES)


@pytest.mark.parametrize("name", ["a", "7", "A-1.b_c", "a..", "x" * 100])
def test_a_good_name_is_one_for_corpora_and_systems(project, name):
    value = edited(renamed(BASE, "systems.b", name), "corpora.0.name", name)
    experiment = project.load(renamed(value, "splits.Own", name))
    assert name in experiment.systems
    assert experiment.corpora[0].name == name


def test_every_pattern_of_the_schemas_says_in_words_what_it_expects():
    parts = [part for schema in SCHEMAS.values() for _, part in parts_of(schema)]
    patterns = [part for part in parts if "pattern" in part]
    assert len(patterns) > 5
    for part in patterns:
        assert part["patternErrorMessage"].startswith("expected ")
        assert part["pattern"].startswith("^")
        assert part["pattern"].endswith("$")


# --- places

CONTROLS = ["", "a\nb", "a\n", "a\tb", "a\0b", "a\x7fb", "a\x1b[2J", "d{x}", "{}", "d}"]
NO_ADDRESSES = ["file:///x", "file:/x", "ftp://h/x", "https:///x", "HTTPS://h/x"]
PLACES = ["corpora.0.source", "evalsets.tatoeba.path", "sources.opus", "systems.b.model"]
SITES = {"data": ["-d", "--d"], "sources.opus": []}  # and what is no place only there


@pytest.mark.parametrize("path", PLACES)
def test_a_place_has_no_control_character_and_no_brace(path):
    value = edited(BASE, "systems.b", {"kind": "folder", "model": "m"})
    words = "without control characters, `{` and `}`"
    for place in (*CONTROLS, *NO_ADDRESSES):
        line = mistake(edited(value, path, place))
        assert f"mine.yaml: {path}: found {place!r}, expected a" in line
        assert words in line


@pytest.mark.parametrize(("path", "more"), SITES.items())
def test_a_place_of_the_site_is_one_too_and_its_data_folder_no_flag(path, more):
    kind = "folder" if more else "path"
    for place in (*CONTROLS, *more):
        message = mistake(edited(SITE, path, place), site_model)
        assert f"mine.yaml: {path}: found {place!r}, expected a {kind}" in message
        assert "without control characters, `{` and `}`" in message
    assert ("not starting with `-`" in message) == bool(more)


@pytest.mark.parametrize("place", ["../a b", "-x", "/a/'b\" $(c);%ü\\", "https://x.y/a?b=c&d#e"])
def test_a_source_may_be_any_other_place(project, place):
    value = edited(edited(BASE, "corpora.0.source", place), "sources", {"opus": place})
    assert project.load(value).corpora[0].source == place


def test_the_data_folder_is_a_folder_or_is_not_there_yet(project):
    (project.root / "file").write_text("text")
    (project.root / "link").symlink_to("nowhere")
    (project.root / "folder").mkdir()
    (project.root / "good").symlink_to("folder")
    for data in ("file", "file/x", "link", "d" * 300):
        project.site({**SITE, "data": data})
        message = project.error()
        assert "config.yaml: data: found" in message
        assert f"{data}', expected a folder or an unused name (" in message
    for data in ("folder", "good", "not there/yet", "a b", "../x"):
        project.site({**SITE, "data": data})
        project.load()


# --- the workflow

TARGETS = ["results/tiny/scores/nosuch/tatoeba.json", "results/tiny/scores/ems/nosuch.json"]
TARGETS += ["data/opus/$(touch pwned)/v1/moses/de-en.txt.zip", "data/opus/Demo/v1/-x.tsv"]
TARGETS += ["data/opus/Demo/v1/moses/--out x.txt.zip"]


@pytest.mark.slow
def test_a_target_with_a_bad_name_is_no_target(fresh: Project) -> None:
    for target in TARGETS:
        output = fresh.snakemake("-n", "--", target, expect=1)
        assert f"No rule to produce {target}" in output
        assert "Traceback" not in output
