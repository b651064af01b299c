"""Laws of what is made from the settings: it is fresh, and says something of every key."""

import json
import re
import runpy

import pytest
from conftest import ROOT
from made.experiments import SCHEMAS

FILES = runpy.run_path(str(ROOT / "docs/settings.py"))["generated"]()


@pytest.mark.parametrize("path", FILES)
def test_the_file_is_what_the_settings_make(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert text == FILES[path], "run `make pages`"


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_key_has_a_sentence_and_stands_on_the_page(name):
    page, count = FILES["docs/config.md"], 0
    sections = {name: SCHEMAS[name], **SCHEMAS[name]["$defs"]}
    for section, schema in sections.items():
        for key, part in schema["properties"].items():
            about = part if "description" in part else sections[part["$ref"].split("/")[-1]]
            assert about["description"], f"{section}.{key}"
            assert f"| `{key}` |" in page
            count += 1
    assert count > 20


def test_every_link_of_the_page_leads_to_a_heading():
    page = FILES["docs/config.md"]
    anchors = {
        "".join(x for x in heading.lower().replace(" ", "-") if x.isalnum() or x in "-_")
        for heading in re.findall("^###? (.*)$", page, re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert len(links) > 20
    assert links <= anchors
    assert len(anchors) == page.count("\n## ") + page.count("\n### ")


def test_the_files_of_settings_name_their_schema():
    for path in [ROOT / "config.yaml", *(ROOT / "configs").glob("*.yaml")]:
        name = "site" if path.name == "config.yaml" else "experiment"
        place = f"{'../' * (path.parent != ROOT)}schemas/{name}.schema.json"
        first, *_ = path.read_text(encoding="utf-8").splitlines()
        assert first == f"# yaml-language-server: $schema={place}"
        assert json.loads((path.parent / place).read_text(encoding="utf-8"))["properties"]
