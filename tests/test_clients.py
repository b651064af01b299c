"""Laws of the programs that use a model: a browser, OpenAI's client, and the examples of
docs/export.md, each of which runs as it stands there and gives what EMS gives."""

import base64
import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, needs
from made.browser import DESKTOP, PHONE, findings
from made.cli import COMMAND, INTEROP, commands, program, section, write_files
from made.corpora import write_lines
from made.models import export, write_model
from made.servers import Served

from ems.corpora.demo.grammar import read_free
from ems.use.encoder import Encoder, score

pytestmark = pytest.mark.slow
FREE = read_free()
ROWS = [(sentence["de"], sentence["en"]) for sentence in FREE[:120]]
WRONG = [(german, english) for (german, _), (_, english) in zip(ROWS, ROWS[7:], strict=False)]
EQUAL = [(german, german) for german, _ in ROWS[:40]]  # which any model scores 1
PAIRS = random.Random(3).sample(ROWS + WRONG + EQUAL, len(ROWS + WRONG + EQUAL))
SIZES = {"layers": 2, "width": 24, "heads": 3, "feed_forward": 40, "max_tokens": 32}
SCRIPT = '<script>document.title = "run"</script><img src=x onerror="document.title = 9">'
ARABIC = "مرحبا بالعالم (kalo)."
TEXT = [*(german for german, _ in ROWS[:30]), SCRIPT, ARABIC]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with exports/ems, as the page takes it for granted."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("clients")
    text = [text for sentence in FREE for text in sentence.values()]
    model = write_model(folder / "model", ["en", "de"], text, 2500, sizes=SIZES)
    write_lines(folder / "lines.txt", text[:100])
    export(model, folder / "exports/ems", "--onnx", "--verify", folder / "lines.txt")
    for side, code in enumerate(("de", "en")):
        write_lines(folder / f"corpus.{code}", [pair[side] for pair in PAIRS])
    (folder / "ems").symlink_to(ROOT / "ems")
    return folder


@pytest.fixture(scope="module")
def served(place):
    write_lines(place / "served.txt", TEXT)
    write_lines(place / "served.txt.languages", [*["de"] * 30, "", "ar"])
    with Served(place, "--model", "exports/ems", "--index", "served.txt") as server:
        yield server


# --- a browser

LINKS = "#results a"


@pytest.fixture
def page(browser, served):
    """A new page that fails the test for a line in its console, an error or a foreign request."""
    page, said = browser.new_page(), []

    def check(request):
        if not request.url.startswith((served.url, "data:,")):
            said.append(request.url)

    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", check)
    yield page
    assert said == []
    page.close()


def rows(page):
    """The score, text and source of each row that the page shows."""
    return [row.locator(":scope > span").all_inner_texts() for row in page.locator(LINKS).all()]


def test_what_is_typed_is_searched_shown_and_linked(page, served, browser):
    page.goto(served.url)
    status = page.get_by_role("status")
    assert f"{len(TEXT)} lines of served.txt" in status.inner_text()
    page.keyboard.type("kalo & ne")  # the field has the focus
    status.filter(has_text=f"12 of {len(TEXT)} lines of served.txt in ").wait_for()
    hits = served.json("GET", "/search?k=12&q=kalo%20%26%20ne")[1]["results"]
    sources = {"de": "German de", "ar": "Arabic ar", "": f"line {len(TEXT) - 1}"}
    shown = [[f"{hit['score']:.3f}", hit["line"], sources[hit["language"]]] for hit in hits]
    assert rows(page) == shown
    assert {row[2] for row in shown} > {"German de"}
    page.get_by_role("link", name="Show more").click()
    status.filter(has_text=f"24 of {len(TEXT)} lines").wait_for()
    assert page.url == f"{served.url}#q=kalo+%26+ne&k=24"
    other = browser.new_page()
    other.goto(page.url)
    other.get_by_role("status").filter(has_text="24 of").wait_for()
    assert rows(other) == rows(page)
    other.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize(
    ("words", "ready"),
    [("?q=kalo", "#results[aria-busy=false] a"), ("?tab=compare&a=kalo&b=ne", "#cosines .one")],
)
def test_the_page_can_be_read_by_all(browser, served, dark, width, words, ready):
    assert findings(browser, served.url + words, dark, width, ready) == []


def test_the_answer_to_an_earlier_query_is_dropped(page, served):
    page.goto(served.url)
    page.route("**/search?q=first*", lambda route: page.wait_for_timeout(500) or route.continue_())
    page.get_by_role("searchbox").fill("first")
    page.wait_for_timeout(200)  # longer than the pause after which it is sent
    page.get_by_role("searchbox").fill(TEXT[3])
    page.locator(LINKS, has_text=TEXT[3]).first.wait_for()
    page.wait_for_timeout(600)
    assert rows(page)[0][:2] == ["1.000", TEXT[3]]


def test_the_keyboard_reaches_everything_and_the_step_back_goes_back(page, served):
    page.goto(f"{served.url}?q=ka")
    page.locator(LINKS).first.wait_for()
    first = rows(page)
    page.get_by_role("heading").click()  # out of the field
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    field = page.get_by_role("searchbox")
    page.locator(LINKS, has_text="1.000").first.wait_for()
    assert (field.input_value(), rows(page)[0][1]) == (first[1][1], first[1][1])
    assert field.evaluate("field => field === document.activeElement")
    page.go_back()
    page.locator(LINKS, has_text=first[0][0]).filter(has_text=first[0][1]).first.wait_for()
    assert (field.input_value(), rows(page)) == ("ka", first)
    page.keyboard.press("Escape")
    page.get_by_text("type in any language").wait_for()
    assert (field.input_value(), page.locator(LINKS).count()) == ("", 0)
    example = page.locator("#search .examples a").first
    text = example.inner_text()
    example.click()
    page.locator(LINKS, has_text=text).first.wait_for()


def test_a_script_in_a_line_is_text_and_any_other_script_is_blocked(page, served, browser):
    page.goto(f"{served.url}?k=1&q={SCRIPT.replace('<', '%3C').replace('=', '%3D')}")
    page.locator(LINKS).first.wait_for()
    assert [row[1] for row in rows(page)] == [SCRIPT]
    page.wait_for_timeout(100)
    assert page.title() == "EMS: search by meaning"
    assert page.locator("main img, main script").count() == 0
    other, said = browser.new_page(), []
    other.goto(served.url)
    other.on("console", lambda message: said.append(message.text))
    script = "Object.assign(document.createElement('script'), {text: 'document.title = 9'})"
    other.evaluate(f"document.body.append({script})")
    assert other.title() == "EMS: search by meaning"
    assert "Content Security Policy" in "".join(said)
    other.close()


def test_text_from_right_to_left_is_set_so(page, served):
    page.goto(f"{served.url}?k=1&q={ARABIC}")
    text = page.locator(f"{LINKS} .text")
    assert (text.inner_text(), text.get_attribute("lang")) == (ARABIC, "ar")
    places = {text: "rtl", page.locator(".source"): "ltr", page.get_by_role("searchbox"): "rtl"}
    for place, direction in places.items():
        assert place.evaluate("element => getComputedStyle(element).direction") == direction


def test_two_texts_are_compared(page, served, place):
    page.goto(served.url)
    page.get_by_role("link", name="Compare").click()
    page.get_by_role("textbox").nth(1).wait_for()  # the tab opens a moment later
    first, second = page.get_by_role("textbox").all()
    first.fill(TEXT[0])
    second.fill(TEXT[1])
    page.locator(".one").wait_for()
    encoder = Encoder(place / "exports/ems")
    assert page.locator(".one").inner_text() == f"{score(encoder, TEXT[0], TEXT[1]):.3f}"
    first.fill(f"{TEXT[0]}\n\n{TEXT[1]}")
    second.fill("\n".join(TEXT[2::-1]))
    page.locator("tbody tr").nth(1).wait_for()
    vectors = encoder.encode(TEXT[:3], normalise=True)
    cosines = [[f"{cosine:.2f}" for cosine in row] for row in vectors[:2] @ vectors[::-1].T]
    shown = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    assert shown == cosines
    assert page.locator(".best").all_inner_texts() == ["1.00", "1.00"]
    page.reload()
    page.locator("tbody tr").nth(1).wait_for()
    first.fill("ka\n" * 41)
    page.get_by_role("alert").filter(has_text="At most 40 lines").wait_for()


@pytest.mark.parametrize("query", [f"?q={'ka' * 99}&k=32", "#tab=compare&a=ka&b=ka%0Ale%0Alo%0Ane"])
def test_a_phone_shows_the_whole_width(page, served, query):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served.url}{query}")
    page.locator(f"{LINKS}, td").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_light_and_dark_are_switched_and_kept(page, served):
    page.emulate_media(color_scheme="dark")
    page.goto(served.url)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Light or dark").click()
    assert (light := page.evaluate(ground)) != dark
    page.reload()
    assert page.evaluate(ground) == light


def test_an_error_of_the_server_is_shown(page, served):
    page.goto(served.url)
    page.route("**/search?*", lambda route: route.fulfill(status=200, body="no JSON"))
    page.get_by_role("searchbox").fill("ka")
    page.get_by_role("alert").filter(has_text="JSON").wait_for()
    assert page.locator(LINKS).count() == 0


def test_without_a_text_the_page_compares_and_sends_no_search(browser, place, tmp_path):
    with Served(tmp_path, "--model", place / "exports/ems") as server:
        page = browser.new_page()
        page.goto(server.url)
        assert page.get_by_role("textbox").count() == 2
        page.get_by_role("link", name="Search").click()
        page.get_by_role("searchbox").fill("ka")
        page.get_by_text("No text to search. Start ems serve with --index").wait_for()
        page.wait_for_timeout(200)
        assert "/search" not in server.log.read_text()
        page.close()


def test_the_client_of_openai_gets_the_vectors_and_the_errors(served, place):
    needs(find_spec("openai"), "openai is not installed: pip install '.[dev]'")
    import openai

    http = openai.DefaultHttpxClient(trust_env=False)
    client = openai.OpenAI(base_url=f"{served.url}v1", api_key="none", http_client=http)
    expected = Encoder(place / "exports/ems").encode(TEXT, normalise=True)
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        answer = client.embeddings.create(input=TEXT, model="ems", **form)
        vectors = [row.embedding for row in answer.data]
        if isinstance(vectors[0], str):  # asked for by name, it stays as it came
            vectors = [np.frombuffer(base64.b64decode(row), "<f4") for row in vectors]
        assert np.array(vectors, np.float32).tobytes() == expected.tobytes()
    answer = client.embeddings.create(input="a", model="ems", dimensions=4)
    assert len(answer.data[0].embedding) == 4
    assert [each.id for each in client.models.list()] == ["ems"]
    with pytest.raises(openai.BadRequestError, match="found token ids"):
        client.embeddings.create(input=[1, 2], model="ems")
    with pytest.raises(openai.NotFoundError, match="does not exist") as error:
        client.embeddings.create(input="a", model="other")
    assert (error.value.code, error.value.param) == ("model_not_found", "model")


# --- the examples of docs/export.md


@pytest.fixture(scope="module")
def cosines(place):
    """The cosines of PAIRS. The threshold of the page leaves some of either kind."""
    values = score(Encoder(place / "exports/ems"), *zip(*PAIRS, strict=True))
    assert 40 <= (values >= 0.8).sum() < len(PAIRS) - 40
    assert np.abs(values - 0.8).min() > 1e-6
    return values


def run(command, folder, tool=""):
    """Run a command of the page in the folder, where `tool` is one of those of `make interop`."""
    binaries = ROOT / ".interop" / tool / "bin"
    needs(not tool or binaries.is_dir(), f"{tool} is not installed: make interop")
    path = os.pathsep.join([str(binaries), str(Path(sys.executable).parent), os.environ["PATH"]])
    options = {"env": {**os.environ, "PATH": path}, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", command], cwd=folder, **options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_each_example_of_the_page_has_its_test_here():
    headings = [part.partition("\n")[0] for part in INTEROP.read_text().split("\n## ")[1:]]
    texts = {heading: section(heading, INTEROP) for heading in headings}
    shown = {name for name, text in texts.items() if "```" in text or COMMAND.search(text)}
    tested = {"sentence-transformers", "transformers", "onnxruntime", "faiss", "OpusCleaner"}
    elsewhere = {"Write an export", "Models with n-grams", "A folder without code", "Publish"}
    assert shown - elsewhere == tested | {"OpusFilter", "vecalign"}


@pytest.mark.parametrize("tool", ["sentence-transformers", "transformers", "onnxruntime", "faiss"])
def test_the_vectors_of_another_library_are_ours(place, monkeypatch, tool):
    pytest.importorskip(tool.replace("-", "_"))
    monkeypatch.chdir(place)
    names = {}
    exec(program(tool, INTEROP), names)
    if tool != "faiss":
        lines = ["Good morning.", "Guten Morgen."]
        expected = Encoder("exports/ems", "cpu").encode(lines, normalise=True)
        np.testing.assert_allclose(np.asarray(names["vectors"]), expected, atol=1e-5)
        return
    query = names["encoder"].encode(["Good morning!"], normalise=True)
    every = (query @ names["vectors"].T)[0]
    assert names["numbers"].tolist() == [[int(every.argmax())]]
    assert names["cosines"][0, 0] == pytest.approx(every.max(), abs=1e-6)


def test_opuscleaner_keeps_the_rows_that_reach_the_threshold(place, cosines):
    write_files("OpusCleaner", place, INTEROP)
    # one row is dropped by the filter before ours, and one is not UTF-8
    lines = ["\t".join(pair).encode() for pair in PAIRS]
    lines[5:5] = [b"a " * 200 + b"\tb", b"\xff\tb"]
    (place / "corpus.tsv").write_bytes(b"\n".join(lines) + b"\n")
    *prepare, command = commands("OpusCleaner", INTEROP)
    for each in prepare:
        run(each, place, "opuscleaner")
    assert "[1:ems_score]" in run(command, place, "opuscleaner")
    kept = [pair for pair, value in zip(PAIRS, cosines, strict=True) if value >= 0.8]
    assert (place / "kept.tsv").read_text() == "".join("\t".join(pair) + "\n" for pair in kept)
    pipeline = json.loads((place / "pipeline.json").read_text())
    pipeline["filters"][1]["parameters"]["MODEL"] = "missing"
    (place / "missing.json").write_text(json.dumps(pipeline))
    with pytest.raises(AssertionError, match="missing: expected a model folder"):
        run(command.replace("pipeline.json", "missing.json"), place, "opuscleaner")


FALSE = """steps:
- type: filter
  parameters:
    inputs: [corpus.de, corpus.en]
    outputs: [dropped.de, dropped.en]
    filterfalse: true
    filters:
    - EmsFilter: {model: exports/ems, threshold: 0.8}
      module: ems.use.opusfilter
"""


def test_opusfilter_scores_and_filters_as_we_do(place, cosines):
    write_files("OpusFilter", place, INTEROP)
    (place / "false.yaml").write_text(FALSE)
    for command in (*commands("OpusFilter", INTEROP), "opusfilter false.yaml"):
        run(command, place, "opusfilter")
    lines = (place / "scores.jsonl").read_text().splitlines()
    scores = [json.loads(line)["EmsFilter"] for line in lines]
    np.testing.assert_allclose(scores, cosines, atol=1e-5)
    names = ("kept.de", "kept.en", "dropped.de")
    *sides, dropped = [(place / name).read_text(encoding="utf-8").splitlines() for name in names]
    kept = [pair for pair, value in zip(PAIRS, cosines, strict=True) if value >= 0.8]
    words = [sorted(len(text.split()) for text in pair) for pair in kept]
    alike = [pair for pair, (few, many) in zip(kept, words, strict=True) if many < 3 * few]
    assert list(zip(*sides, strict=True)) == alike
    below = [pair for pair, value in zip(PAIRS, cosines, strict=True) if value < 0.8]
    assert dropped == [german for german, _ in below]


def test_vecalign_reads_the_vector_of_each_line(place):
    """A line of its --src_embed text is a key, and as many rows of float32 follow each other."""
    for side, code in enumerate(("de", "en")):
        text = [pair[side] for pair in ROWS[:40]]  # 1 to 4 lines in a row, once, sorted
        joined = {" ".join(text[at : at + n]) for n in range(1, 5) for at in range(41 - n)}
        write_lines(place / f"overlaps.{code}", sorted({"PAD", *joined}))
    ours = [each for each in commands("vecalign", INTEROP) if each.startswith("ems ")]
    assert len(ours) == 2
    encoder = Encoder(place / "exports/ems")
    for command, code in zip(ours, ("de", "en"), strict=True):
        run(command, place)
        lines = (place / f"overlaps.{code}").read_text(encoding="utf-8").split("\n")[:-1]
        vectors = np.fromfile(place / f"overlaps.{code}.f32", np.float32).reshape(len(lines), -1)
        assert len(lines) > 150
        np.testing.assert_allclose(vectors, encoder.encode(lines), atol=1e-5)
