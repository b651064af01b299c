"""Laws of the documentation: no link leads nowhere, and the generated pages are fresh."""

import json
import re
import runpy

import pytest
from conftest import ROOT
from made.experiments import SCHEMAS
from ruamel.yaml import YAML

from ems.commands import COMMANDS
from ems.commands.flags import Mark, flags_of
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
    assert len(pages) <= 18
    long = {page.stem for page in pages if page.read_text("utf-8").count("\n") > 350}
    assert long <= {"cli", "config", "log"}


def test_the_experiments_of_running_md_load(tmp_path):
    page = (ROOT / "docs/running.md").read_text("utf-8")
    own = page.partition("### With nothing but your own text")[2]
    own = own[own.index("    languages:") :].partition("\nSet `train.steps`")[0]
    made = {"own": load_yaml(ROOT / "configs/starter.yaml") | YAML(typ="safe").load(own)}
    for name, key, value in re.findall(r"-S 'configs/(\w+)\.yaml:\+?([\w.]+)=(\S+)'", page):
        made[key] = load_yaml(ROOT / f"configs/{name}.yaml")
        section, _, setting = key.partition(".")
        made[key][section][setting] = int(value)
    assert set(made) == {"own", "train.steps", "train.seed"}
    for name, settings in made.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(settings), "utf-8")
        load_experiment(name, load_site(ROOT / "config.yaml"), tmp_path)


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
