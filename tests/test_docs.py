"""Laws of the documentation: no link leads nowhere, and the generated pages are fresh."""

import gzip
import io
import json
import re
import runpy
import shlex
from contextlib import chdir

import pytest
from conftest import ROOT
from made.cli import Cli
from made.corpora import translations, write_lines
from made.experiments import SCHEMAS

from ems.commands import COMMANDS
from ems.commands.flags import Mark, flags_of, parse
from ems.config.load import load_experiment, load_site, load_yaml

PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "config/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|^(?: {4}|\t).*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(text):
    """The anchors of the headings of a page, as GitHub makes them."""
    text = re.sub("^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall("^#{1,6} (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {"".join(x for x in h.replace(" ", "-") if x.isalnum() or x in "-_") for h in plain}


def broken(page):
    """The links of a page that lead to no file, or to no heading of it."""
    links = [x for x in LINK.findall(CODE.sub("", page.read_text("utf-8"))) if "://" not in x]
    for link in links:
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_of_a_page_leads_nowhere(page):
    assert list(broken(page)) == []


def test_the_check_of_links_sees_a_lost_file_and_a_lost_heading(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` (c)\n[1](page.md#a-b-c) [2](gone.md) [3](#gone) [4](https://x.org/#gone)\n"
        "`[5](gone.md)`\n\n    [6](gone.md)\n\n```\n# Gone\n[7](gone.md)\n```\n"
    )
    assert list(broken(page)) == ["gone.md", "#gone"]
    links = [link for each in PAGES for link in LINK.findall(each.read_text("utf-8"))]
    assert len(links) > 100


def test_the_readme_is_read_in_a_minute_and_a_page_at_once():
    readme = CODE.sub("`x`", (ROOT / "README.md").read_text("utf-8"))
    assert readme.count("\n") <= 170
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", readme)
    prose = [part for part in plain.split("\n\n") if not part.startswith(("|", "#"))]
    sentences = [each for part in prose for each in re.split(r"[.:]\s", part)]
    assert [each for each in sentences if len(each.split()) > 25] == []
    pages = list((ROOT / "docs").glob("*.md"))
    assert len(pages) <= 19
    long = {page.stem for page in pages if page.read_text("utf-8").count("\n") > 350}
    assert long <= {"cli", "config", "log"}


def test_the_experiments_of_running_md_load(tmp_path):
    page = (ROOT / "docs/running.md").read_text("utf-8")
    made = {}
    for name, key, value in re.findall(r"-S 'configs/(\w+)\.yaml:\+?([\w.]+)=(\S+)'", page):
        made[key] = load_yaml(ROOT / f"configs/{name}.yaml")
        section, _, setting = key.partition(".")
        made[key][section][setting] = int(value)
    assert set(made) == {"train.steps", "train.seed"}
    for name, settings in made.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(settings), "utf-8")
        load_experiment(name, load_site(ROOT / "config.yaml"), tmp_path)


# --- the examples

BOX = ROOT / "models/ems-62"
EXAMPLE = re.compile(
    r"^ {4,}(?:echo [^|\n]+ \| )?(ems [a-z].*[^\\\n])$|^ems [a-z].*[^\\\n]$", re.MULTILINE
)
FOUND = {  # command -> the first page that shows it
    match[1] or match[0]: str(page.relative_to(ROOT))
    for page in reversed([each for each in PAGES if each.stem not in ("cli", "log")])
    for match in EXAMPLE.finditer(page.read_text("utf-8"))
}
RUN = {"encode", "score", "mine", "search", "align", "init", "corpora"}
ELSEWHERE = {  # need the result of a run, or the network; the tests of their commands have one
    *("results", "ems62", "texts", "mine", "second", "theirs", "starter", "evalsets", "update")
}


def words_of(command):
    """The words of a command, with flags instead of redirections."""
    words = re.sub(r"^(ems corpora .*) > .*", r"\1", command)  # it has no --out
    words = words.replace(" < ", " --source ").replace(" > ", " --out ")
    return shlex.split(words, comments=True)


def offline():
    """The examples that need nothing but the encoder in the box, and text in a file."""
    for command in FOUND:
        command = re.sub(r"--model \S+", f"--model {BOX}", command)
        _, name, *words = words_of(command)
        if name in RUN and not {*re.findall(r"\w+", " ".join(words))} & ELSEWHERE:
            yield command


def test_each_command_of_a_page_has_flags_that_exist():
    assert len(FOUND) > 60
    assert len({*offline()}) > 20
    for command in FOUND:
        words = words_of(command)
        assert parse(COMMANDS, words[1:])[0] == words[1], FOUND[command]


@pytest.mark.parametrize("command", sorted({*offline()}))
def test_an_example_that_needs_no_run_does_what_it_says(command, tmp_path, monkeypatch):
    ems, lines = Cli(tmp_path), (ROOT / "examples/phrases.txt").read_text("utf-8").splitlines()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in ("lines.txt", "a.txt", "b.txt", "corpus.txt", "english.txt", "overlaps.de"):
        write_lines(tmp_path / name, lines[:40])
    (tmp_path / "lines.txt.gz").write_bytes(gzip.compress((tmp_path / "lines.txt").read_bytes()))
    (tmp_path / "overlaps.en").symlink_to("overlaps.de")
    items = [(item["en"], item["da"]) for item in translations(600, ["en", "da"], 1, least=3)]
    write_lines(tmp_path / "pairs.tsv", map("\t".join, items))
    for side, code in enumerate(("en", "da")):
        write_lines(tmp_path / f"more.{code}", [pair[side] for pair in items])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Wo ist der Bahnhof?\n")))
    ems.run(*words_of(command)[1:])


@pytest.mark.parametrize("page", ["README.md", "docs/use.md", "docs/align.md"])
def test_the_python_of_a_page_runs_with_the_encoder_in_the_box(page):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
    own = [block for block in blocks if block.startswith("from ems")]
    known = {"german_lines": ["Guten Tag."], "french_lines": ["Bonjour."]}
    assert own
    with chdir(ROOT):
        for block in own:
            exec(block.replace("results/demo/exports/ems", "models/ems-62"), known)


# --- what `make pages` writes

FILES = runpy.run_path(str(ROOT / "docs/settings.py"))["generated"]()
FILES["docs/cli.md"] = runpy.run_path(str(ROOT / "docs/commands.py"))["page"]()


@pytest.mark.parametrize("path", FILES)
def test_the_file_is_what_the_settings_and_the_commands_make(path):
    assert (ROOT / path).read_text(encoding="utf-8") == FILES[path], "run `make pages`"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_commands_has_every_command_with_every_flag(name):
    section = FILES["docs/cli.md"].partition(f"\n### ems {name}\n")[2]
    rows = re.findall(r"^\| `([^`]*)` \|", section.partition("\n##")[0], re.M)
    flags = [flag for flag in flags_of(COMMANDS[name]) if Mark.HIDDEN not in flag.notes]
    assert section
    assert rows == [flag.label for flag in flags]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_has_a_sentence_and_stands_on_the_page(name):
    page, sections = FILES["docs/config.md"], {name: SCHEMAS[name], **SCHEMAS[name]["$defs"]}
    keys = [(each, part) for s in sections.values() for each, part in s["properties"].items()]
    assert len(keys) > 20
    for key, part in keys:
        about = part if "description" in part else sections[part["$ref"].split("/")[-1]]
        assert about["description"], key
        assert f"| `{key}` |" in page
    assert len(anchors(page)) == len(re.findall("^#+ ", page, re.M))  # no two headings alike


def test_the_files_of_settings_name_their_schema():
    for path in [ROOT / "config.yaml", *(ROOT / "configs").glob("*.yaml")]:
        name = "site" if path.name == "config.yaml" else "experiment"
        place = f"{'../' * (path.parent != ROOT)}schemas/{name}.schema.json"
        first, *_ = path.read_text(encoding="utf-8").splitlines()
        assert first == f"# yaml-language-server: $schema={place}"
        assert json.loads((path.parent / place).read_text(encoding="utf-8"))["properties"]
