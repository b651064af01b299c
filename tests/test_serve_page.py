"""Laws of the page of the server, in a browser: it shows what the server finds, as text, whatever
stands in a line, and sends no request to another host."""

import random
import shutil
from importlib.util import find_spec

import pytest
from conftest import needs
from made.models import write_model
from made.servers import Served

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
DRAW = random.Random(9)
SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "so", "ti", "va"]
TEXT = ["".join(DRAW.choices(SYLLABLES, k=DRAW.randint(1, 9))) for _ in range(30)]
SCRIPT = '<script>document.title = "run"</script><img src=x onerror="document.title = 9">'
ARABIC = "مرحبا بالعالم (kalo)."
TEXT += [SCRIPT, ARABIC]
OPEN = "table:visible tbody tr"


@pytest.fixture(scope="module")
def browser():
    needs(CHROMIUM, "no browser: apt-get install chromium-headless-shell")
    needs(find_spec("playwright"), "playwright is not installed: pip install '.[dev]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("page") / "toy", ["de", "en"], TEXT * 6)


@pytest.fixture(scope="module")
def served(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "corpus.txt").write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8")
    with Served(folder, "--model", model, "--index", "corpus.txt") as server:
        yield server


@pytest.fixture
def page(browser, served):
    """A new page that fails the test for a line in its console, an error or a foreign request."""
    page, said = browser.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if foreign(request, served) else 0)
    yield page
    assert said == []
    page.close()


def foreign(request, served):
    return not request.url.startswith((served.url, "data:,"))


def rows(page):
    """The cells of each row that the page shows."""
    page.locator(OPEN).first.wait_for()
    return [row.locator("td").all_inner_texts() for row in page.locator(OPEN).all()]


def found(served, query, k):
    """The cells of each row that the server finds."""
    answer = served.json("GET", f"/search?k={k}&q={query}")[1]["results"]
    return [[f"{hit['score']:.4f}", str(hit["number"]), hit["line"]] for hit in answer]


def test_a_query_is_typed_and_its_lines_are_shown_and_linked(page, served, browser):
    page.goto(served.url)
    assert f"{len(TEXT)} lines of corpus.txt" in page.inner_text("main")
    assert not page.locator("table").is_visible()
    page.get_by_label("Search for").fill("kalo & ne")
    page.get_by_label("Lines").fill("3")
    page.get_by_role("button", name="Search").click()
    shown = rows(page)
    assert shown == found(served, "kalo%20%26%20ne", 3)
    assert len(shown) == 3
    assert page.get_by_role("status").inner_text().startswith(f"3 of {len(TEXT)} lines in ")
    link = page.get_by_role("link", name="Link to this search").get_attribute("href")
    other = browser.new_page()
    other.goto(f"{served.url}{link}")
    assert rows(other) == shown
    assert other.get_by_label("Lines").input_value() == "3"
    assert other.url == page.url
    other.close()


def test_the_step_back_shows_the_search_before(page, served):
    page.goto(f"{served.url}?q=ka&k=2")
    first = rows(page)
    page.get_by_label("Search for").fill(TEXT[3])
    page.keyboard.press("Enter")
    page.locator(OPEN, has_text=TEXT[3]).wait_for()
    page.go_back()
    page.locator(OPEN, has_text=first[0][2]).first.wait_for()
    assert rows(page) == first
    assert page.get_by_label("Search for").input_value() == "ka"


def test_a_script_in_a_line_is_shown_and_not_run(page, served):
    page.goto(f"{served.url}?k=2&q=script%20document.title")
    assert rows(page) == found(served, "script%20document.title", 2)
    page.goto(f"{served.url}?k=1&q={SCRIPT.replace('<', '%3C').replace('=', '%3D')}")
    assert [row[2] for row in rows(page)] == [SCRIPT]
    page.wait_for_timeout(100)
    assert page.title() == "EMS: search by meaning"
    assert page.locator("main img, main script").count() == 0


def test_the_policy_stops_a_script_that_got_in_all_the_same(browser, served):
    page = browser.new_page()
    page.goto(served.url)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.evaluate(
        """() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'run'";
        document.body.append(script);
    }"""
    )
    assert page.title() == "EMS: search by meaning"
    assert "Content Security Policy" in "".join(said)
    page.close()


def test_text_from_right_to_left_is_set_so(page, served):
    page.goto(f"{served.url}?k=1&q={ARABIC}")
    assert [row[2] for row in rows(page)] == [ARABIC]
    direction = "element => getComputedStyle(element).direction"
    cells = page.locator(f"{OPEN} td")
    assert cells.last.evaluate(direction) == "rtl"
    assert cells.first.evaluate(direction) == "ltr"
    assert page.get_by_label("Search for").evaluate(direction) == "rtl"


def test_an_error_of_the_server_is_shown(page, served):
    page.goto(served.url)
    page.route("**/search?*", lambda route: route.fulfill(status=200, body="no JSON"))
    page.get_by_label("Search for").fill("ka")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="JSON").wait_for()
    assert not page.locator("table").is_visible()


def test_every_field_has_a_label_and_the_table_has_heads(page, served):
    page.goto(f"{served.url}?q=ka")
    rows(page)
    labels = "() => [...document.querySelectorAll('input')].map(input => input.labels.length)"
    assert page.evaluate(labels) == [1, 1]
    heads = page.get_by_role("columnheader").all_inner_texts()
    assert heads == ["Score", "Line", "Text"]
    assert page.evaluate("document.documentElement.lang") == "en"


def test_without_a_text_the_page_says_so_and_asks_nothing(browser, model, tmp_path):
    with Served(tmp_path, "--model", model) as server:
        page = browser.new_page()
        page.goto(f"{server.url}?q=ka")
        assert "No text to search" in page.inner_text("main")
        assert not page.get_by_role("search").is_visible()
        assert "/search" not in server.log.read_text()
        page.close()
