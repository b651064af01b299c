"""Laws of the documentation's site: it is built without a network and loads nothing from one, its
links lead somewhere, and readers can use it from a folder, on a phone, in the dark and by keys."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec

import pytest
from conftest import ROOT, needs
from made.browser import DESKTOP, PHONE, findings, opened, violations

from ems import Encoder

PAGES = sorted([page.stem for page in (ROOT / "docs").glob("*.md")] + ["contributing", "changes"])
# resources that a browser loads without a click
LOADED = re.compile(
    r"""<(?:(?:script|img|iframe)\b[^>]*?\bsrc|link\b[^>]*?\bhref)=["']?([^"'\s>]+)"""
)
LOADED_BY_STYLES = re.compile(r"""(?:url\(|@import )["']?((?:https?:)?//[^"')]+)""")
TAGS = """a article aside body br button code div em footer form h1 h2 h3 h4 head header hr html img
input label li link main meta nav ol p path pre rect script span strong style svg table tbody td
text th thead title tr ul"""


def build(folder, project=ROOT):
    """Build the site; mkdocs stops at a warning, which each page without a place is."""
    needs(find_spec("material"), "mkdocs-material is not installed: pip install '.[docs]'")
    proxies = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https")}  # no network
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=project,
        env={**os.environ, **proxies, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "site"
    build(folder)
    return folder


class Html(HTMLParser):
    """The tags, anchors and links of a page, and the text of each link."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.anchors, self.links, self.in_link = set(), set(), [], False
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        self.anchors.add(attributes.get("id"))
        if tag == "a" and "href" in attributes:
            self.links.append([attributes["href"], ""])
            self.in_link = True

    def handle_endtag(self, tag):
        self.in_link = self.in_link and tag != "a"

    def handle_data(self, text):
        if self.in_link:
            self.links[-1][1] += text


@pytest.fixture(scope="module")
def pages(site):
    return {path.name: Html(path) for path in site.glob("*.html")}


def test_the_site_has_every_page_and_no_program(site, pages):
    assert set(pages) == {f"{page}.html" for page in PAGES}
    names = {path.name for path in site.rglob("*")}
    assert not [name for name in names if name.endswith((".py", ".pyc", "__pycache__"))]


def test_the_site_loads_nothing_from_another_host(site):
    loaded = {each for page in site.glob("*.html") for each in LOADED.findall(page.read_text())}
    assert {".css", ".js"} <= {os.path.splitext(address)[1] for address in loaded}
    assert not [address for address in loaded if "//" in address]
    styles = "".join(style.read_text("utf-8") for style in site.rglob("*.css"))
    assert styles
    assert LOADED_BY_STYLES.findall(styles) == []


def test_every_link_leads_to_a_page_and_a_heading(site, pages):
    checked = 0
    for name, page in pages.items():
        for link, _ in page.links:
            if re.match("https?:", link):
                continue
            target, _, anchor = link.partition("#")
            target = "index.html" if target == "." else target or name
            assert (site / target).exists(), f"{name}: {link}"
            assert not anchor or anchor in pages[target].anchors, f"{name}: {link}"
            checked += 1
    assert checked > 1000


def test_a_link_shows_a_title_instead_of_the_name_of_a_page(pages):
    texts = [text for page in pages.values() for _, text in page.links]
    assert [text for text in texts if re.fullmatch(r"\s*[\w/.]+\.md\s*", text)] == []
    assert "After a crash" in [text for link, text in pages["architecture.html"].links]


def test_words_in_angle_brackets_are_text(pages):
    tags = {(tag, name) for name, page in pages.items() for tag in page.tags}
    assert {(tag, name) for tag, name in tags if tag not in TAGS.split()} == set()


def test_the_repository_and_the_gallery_are_linked_once_they_exist(tmp_path):
    for name in ("mkdocs.yml", "CITATION.cff", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with open(tmp_path / "CITATION.cff", "a", encoding="utf-8") as citation:
        citation.write("repository-code: https://example.org/us/ems\n")
    (tmp_path / "docs/gallery.md").write_text("# Gallery\n")
    build(tmp_path / "site", tmp_path)
    links = {name: dict(Html(tmp_path / f"site/{name}.html").links) for name in PAGES}
    edit = "https://example.org/us/ems/edit/main"
    assert f"{edit}/docs/use.md" in links["use"]
    assert f"{edit}/CHANGELOG.md" in links["changes"]
    assert not [link for link in links["config"] if link.startswith(edit)]  # `make pages` writes it
    assert {"https://example.org/us/ems", "gallery.html"} <= set(links["use"])


def test_the_figure_of_the_landing_page_has_the_cosines_of_the_encoder():
    figure = (ROOT / "docs/nearest.svg").read_text("utf-8")
    question = re.search('<text class="bold"[^>]*>([^<]*)<', figure)[1]
    rows = re.findall(
        r'<text x="84"[^>]*>([^<]*)<.*?<text class="right"[^>]*>([^<]*)<', figure, re.S
    )
    vectors = Encoder().encode([question, *(text for text, _ in rows)], normalise=True)
    cosines = [f"{cosine:.2f}".replace("-", "−") for cosine in vectors[1:] @ vectors[0]]
    assert [shown for _, shown in rows] == cosines
    assert len(rows) == 8
    phrases = (ROOT / "examples/phrases.txt").read_text("utf-8").splitlines()
    assert {text for text, _ in rows} < set(phrases)


# --- in a browser


VIEWS, NAMES = [(False, DESKTOP), (True, PHONE)], ["light", "dark-phone"]
OTHER_VIEWS = [(True, DESKTOP), (False, PHONE)]


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_by_all(browser, site, name, view):
    assert findings(browser, site / f"{name}.html", *view) == []


@pytest.mark.slow
@pytest.mark.parametrize("view", OTHER_VIEWS, ids=["dark", "light-phone"])
@pytest.mark.parametrize("name", ["index", "architecture", "benchmarks", "results"])
def test_a_page_can_be_read_in_the_other_colours_too(browser, site, name, view):
    assert findings(browser, site / f"{name}.html", *view) == []


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS, ids=NAMES)
def test_the_search_works_from_a_folder(browser, site, view):
    with opened(browser, site / "index.html", *view) as (page, said):
        page.keyboard.press("/")
        page.get_by_role("textbox", name="Search").press_sequentially("decontamination")
        hit = page.locator("a.md-search-result__link[href*='glossary.html?h=decontamination#']")
        hit.wait_for()
        assert violations(page) == []
        hit.click()
        page.wait_for_url("**/glossary.html?h=*")
        assert page.locator("mark", has_text="decontamination").count()
        assert said == []


@pytest.mark.slow
def test_the_reader_chooses_light_or_dark_and_the_figure_follows(browser, site):
    with opened(browser, site / "index.html", dark=True) as (page, said):
        title = page.locator("svg.drawn text").first
        colours = []
        for name in ("Use light colours", "Use dark colours", "Use the colours of the system"):
            colours.append(title.evaluate("(text) => getComputedStyle(text).fill"))
            page.locator(f"label[title='{name}']").click()
        dark, light, chosen = colours
        assert dark == chosen != light
        assert said == []


@pytest.mark.slow
def test_a_wide_table_scrolls_in_a_box_that_keys_reach(browser, site):
    with opened(browser, site / "benchmarks.html", width=PHONE) as (page, _):
        box = page.locator("div.table[tabindex='0'][role='region']").first
        box.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("(box) => box.scrollLeft > 0", arg=box.element_handle())
    with opened(browser, site / "config.html", width=PHONE) as (page, _):
        assert page.locator("div.table").count() > 10
        assert page.locator("div.table[tabindex]").count() == 0  # rows are stacked


@pytest.mark.slow
def test_the_check_of_pages_sees_what_is_wrong(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<html lang=en><title>x</title><main><h1>x</h1><p style='color: #aaa'>pale</p>"
        "<img src=gone><pre style='width: 500px'>wide</pre></main><script src='http://127.0.0.1:9/x.js'></script>"
    )
    found = "\n".join(findings(browser, page, width=PHONE))
    for fault in ("color-contrast", "image-alt", "500 px wide", "loads http", "console: "):
        assert fault in found.replace("508", "500"), fault
    page.write_text("<html lang=en><title>x</title><main><h1>x</h1></main>")
    assert findings(browser, page) == []
