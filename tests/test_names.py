"""Laws of names and places: what a path or a command is made of can be nothing but a name."""

import copy

import pytest
from cli_made import Cli
from conftest import Project
from experiments_made import REAL, SITE, Settings, edited

from ems.config.file import experiment_model
from ems.config.page.schema import experiment_schema, site_schema
from ems.config.site import site_model
from ems.errors import EmsError
from ems.settings import checked

EVIL = ["..", ".", ".a", "-x", "_a", "a/b", "../../x", "/a", "a b", "a;b", "$(touch pwned)"]
EVIL += ["`a`", "a'b", 'a"b', "a%b", "{x}", "a\nb", "\na", "a\n", "a\r", "a\0", "a\\", "ü", ""]
WORDS = "expected letters, digits, `.`, `_` and `-`, starting with a letter or digit"
OWN = {"name": "Own", "version": "v1", "source": "somewhere"}
SPLITS = {"Own": {"documents": "ids.tsv", "parts": {"train": 0.5, "test": 0.5}}}
BASE = edited(edited(REAL, "corpora.0", {**OWN, "part": "train"}), "splits", SPLITS)
BASE = edited(BASE, "splits.Other", {"first": {"validation": 10}, "rest": "train"})
BASE = edited(BASE, "languages", ["en", "de", "ja", {"code": "xq", "tatoeba_v1": "xqq"}])
BASE = edited(BASE, "vocabularies.shorter", {"languages": ["en", "de"]})
NAMES = ["corpora.0.name", "validation.name"]
VERSIONS = ["corpora.0.version", "validation.version", "evalsets.tatoeba.version"]
KEYS = ["splits.Own", "vocabularies.shorter", "systems.b"]
PARTS = ["splits.Own.parts.test", "splits.Other.first.validation"]


@pytest.fixture
def project(tmp_path):
    return Settings(tmp_path, BASE)


def mistake(value, model=experiment_model):
    """Return the one line of the error that a bad setting gives."""
    with pytest.raises(EmsError) as error:
        checked(model(), value, "mine.yaml")
    assert "\n" not in str(error.value)
    return str(error.value)


def renamed(value, path, new):
    """A copy of `value` in which the last key of the dotted `path` is called `new`."""
    value = copy.deepcopy(value)
    *front, last = path.split(".")
    at = value
    for key in front:
        at = at[key]
    at[new] = at.pop(last)
    return value


def test_the_base_of_these_tests_is_no_mistake(project):
    checked(experiment_model(), BASE, "mine.yaml")
    assert project.load().corpora[0].label == "Own+train"


# --- names


@pytest.mark.parametrize("path", [*NAMES, *VERSIONS, "splits.Own.documents"])
@pytest.mark.parametrize("name", [*EVIL, "a" * 101])
def test_a_bad_name_is_one_line_that_says_what_a_name_is(path, name):
    message = mistake(edited(BASE, path, name))
    assert f"mine.yaml: {path}: found {name!r}, {WORDS}" in message


@pytest.mark.parametrize("path", KEYS)
@pytest.mark.parametrize("name", [*EVIL, "a" * 101])
def test_a_bad_name_that_is_a_key_is_the_same_line(path, name):
    message = mistake(renamed(BASE, path, name))
    assert f"mine.yaml: {path.partition('.')[0]}: found {name!r}, {WORDS}" in message


@pytest.mark.parametrize("name", ["a", "7", "A-1.b_c", "a..", "x" * 100])
def test_a_good_name_is_one_for_corpora_and_systems(project, name):
    value = edited(renamed(BASE, "systems.b", name), "corpora.0.name", name)
    experiment = project.load(renamed(value, "splits.Own", name))
    assert name in experiment.systems
    assert experiment.corpora[0].name == name


@pytest.mark.parametrize("name", [*EVIL, "a" * 101])
def test_the_name_of_an_experiment_is_a_name(name):
    message = mistake({**SITE, "experiment": name}, site_model)
    assert f"mine.yaml: experiment: found {name!r}, {WORDS}" in message


@pytest.mark.parametrize("name", [*EVIL, "A", "a1", "a" * 31])
def test_a_part_of_a_corpus_is_a_word(name):
    for value in [renamed(BASE, path, name) for path in PARTS]:
        message = mistake(value)
        assert f"found {name!r}, expected small letters (a to z), at most 30 characters" in message
    message = mistake(edited(BASE, "splits.Other.rest", name))
    assert f"splits.Other.rest: found {name!r}, expected small letters" in message


@pytest.mark.parametrize("code", [code for code in EVIL if code] + ["a1", "a.b", "a" * 21])
def test_a_code_of_a_language_is_letters(code):
    words = "letters and `_`, starting with a letter, at most 20 characters"
    for key in ("tatoeba_v1", "flores200"):
        message = mistake(edited(BASE, f"languages.3.{key}", code))
        assert f"languages.3.{key}: found {code!r}, expected {words}" in message
    message = mistake(edited(BASE, "languages.3.code", code))
    assert f"languages.3.code: found {code!r}, expected small {words}" in message
    message = mistake(edited(BASE, "corpora.0.codes", {"de": ["de_AT", code]}))
    assert f"corpora.0.codes.de.1: found {code!r}, expected {words}" in message


def _patterns(schema):
    """Every part of a schema that has a pattern."""
    parts = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema
    for part in parts:
        if isinstance(part, (dict, list)):
            yield from _patterns(part)


def test_every_pattern_of_the_schemas_says_in_words_what_it_expects():
    patterns = [*_patterns(experiment_schema()), *_patterns(site_schema())]
    assert len(patterns) > 5
    for part in patterns:
        assert part["patternErrorMessage"].startswith("expected ")
        assert part["pattern"].startswith("^")
        assert part["pattern"].endswith("$")


# --- places

CONTROLS = ["", "a\nb", "a\n", "a\tb", "a\0b", "a\x7fb", "a\x1b[2J", "d{x}", "{}", "d}"]
PLACES = ["corpora.0.source", "evalsets.tatoeba.path", "sources.opus", "systems.b.model"]


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("place", CONTROLS)
def test_a_place_has_no_control_character_and_no_brace(path, place):
    value = edited(BASE, "systems.b", {"kind": "folder", "model": "m"})
    message = mistake(edited(value, path, place))
    words = "expected a place without control characters, `{` and `}`"
    assert f"mine.yaml: {path}: found {place!r}, {words}" in message


@pytest.mark.parametrize("place", ["../a b", "-x", "/a/'b\" $(c);%ü\\", "https://x.y/a?b=c&d#e"])
def test_a_source_may_be_any_other_place(project, place):
    value = edited(edited(BASE, "corpora.0.source", place), "sources", {"opus": place})
    assert project.load(value).corpora[0].source == place


@pytest.mark.parametrize("place", [*CONTROLS, "-d", "--d"])
def test_the_data_folder_is_a_place_that_is_no_flag(place):
    words = "expected a folder without control characters, `{` and `}`, not starting with `-`"
    message = mistake({**SITE, "data": place}, site_model)
    assert f"mine.yaml: data: found {place!r}, {words}" in message


@pytest.mark.parametrize("place", CONTROLS)
def test_a_source_of_the_site_is_a_place_too(place):
    message = mistake({**SITE, "sources": {"opus": place}}, site_model)
    assert f"mine.yaml: sources.opus: found {place!r}, expected a place" in message


def test_the_data_folder_is_a_folder_or_is_not_there_yet(project):
    (project.root / "file").write_text("text")
    (project.root / "link").symlink_to("nowhere")
    (project.root / "folder").mkdir()
    (project.root / "good").symlink_to("folder")
    for data in ("file", "file/x", "link", "d" * 300):
        project.site({**SITE, "data": data})
        message = project.told()
        assert "config.yaml: data: found" in message
        assert f"{data}', expected a folder or a name that is free (" in message
    for data in ("folder", "good", "not there/yet", "a b", "../x"):
        project.site({**SITE, "data": data})
        project.load()


# --- the command line

CALLS = [
    ("check", "--experiment", "../tiny"),
    ("eval", "--experiment", "../tiny", "--bench", "tatoeba", "--model", "m"),
    ("fetch", "--source", "s", "--corpus", "..", "--version", "v1", "--pair", "de-en"),
    ("fetch", "--source", "s", "--corpus", "a", "--version", "../..", "--pair", "de-en"),
    ("fetch", "--source", "s", "--corpus", "a", "--version", "v1", "--pair", "../../x"),
    ("fetch-documents", "--source", "s", "--corpus", "..", "--version", "v1"),
    ("fetch-evalset", "--source", "s", "--evalset", "tatoeba", "--code", "../../x"),
    ("fetch-evalset", "--source", "s", "--evalset", "flores200", "--code", "x\n"),
]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_bad_name_on_the_command_line_is_one_line_and_nothing_is_written(tmp_path, call):
    ems = Cli(tmp_path)
    out = () if call[0] == "check" else ("--out", tmp_path / "a" / "b")
    (name,) = [word for word in call if word[0] == "." or word[-1] == "\n"]
    flag = call[call.index(name) - 1]
    assert f"{flag}: found {name!r}, {WORDS}" in ems.error(*call, *out)
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.yaml",
        "configs",
        "schemas",
        "logs",
    }


def test_a_data_folder_that_is_a_file_is_one_line_of_ems_check(tmp_path):
    ems = Cli(tmp_path)
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("data: data", "data: config.yaml"))
    assert "data: found 'config.yaml', expected a folder" in ems.error("check")


# --- targets of the workflow

TARGETS = [
    "results/tiny/scores/nosuch/tatoeba.json",
    "results/tiny/scores/ems/nosuch.json",
    "data/opus/$(touch pwned)/v1/moses/de-en.txt.zip",
    "data/opus/Demo/v1/moses/--out x.txt.zip",
    "data/opus/Demo/v1/-x.tsv",
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_with_a_bad_name_is_no_target(fresh: Project, target: str) -> None:
    output = fresh.snakemake("-n", "--", target, expect=1)
    assert f"No rule to produce {target}" in output
    assert "Traceback" not in output
