"""Laws of the server: it answers as the commands and the encoder do, rejects bad requests with a
clear error, and survives a flood and a signal."""

import base64
import html
import json
import os
import re
import select
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
import yaml
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made.cli import Cli
from made.corpora import translations, write_lines
from made.models import write_model, write_segmented
from made.servers import MOST, Served, ask, ask_json
from starlette.exceptions import HTTPException

from ems.base.errors import EmsError, NotFinite
from ems.use import serve
from ems.use.connection import BODY, HEAD
from ems.use.encoder import Encoder
from ems.use.search import index_of
from ems.use.serve import INPUTS, LINE_CHARACTERS, TEXT_CHARACTERS, Service
from ems.use.stream import TextInput


class Slow:
    """An encoder that waits at the text `wait`, fails at `fail`, and has no finite vector for
    `nan`; `lines` lists all texts received."""

    model, languages = "slow", ()

    def __init__(self):
        self.asked, self.let, self.lines = threading.Event(), threading.Event(), []

    def counted(self, lines, *_, **__):
        self.lines += lines
        if "fail" in lines:
            raise ZeroDivisionError
        if "nan" in lines:
            raise NotFinite("/srv/slow: the vectors are not finite")
        if "wait" in lines:
            self.asked.set()
            assert self.let.wait(MOST)
        return np.ones((len(lines), 2), np.float32), [1] * len(lines)

    vectors = counted


@pytest.fixture
def slow():
    """A slow encoder, and `ems serve` in this process that uses it."""
    encoder, listening = Slow(), serve.connection.listen("127.0.0.1", 0)
    server = serve.server_of(serve.Service(encoder), listening)
    server.url = serve.url_of(listening)
    server.running = threading.Thread(target=server.run, args=[[listening]])
    server.running.start()
    yield encoder, server
    server.should_exit = True
    server.running.join()


pytestmark = pytest.mark.slow
TEXT = [item["en"] for item in translations(50, ["en"], seed=5, most=9)]
TEXT += ["مرحبا بالعالم", "नमस्ते दुनिया", "<b>kalo</b>", "ka " * LINE_CHARACTERS, ""]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("serve") / "toy", ["de", "en"], TEXT[:53] * 6)


@pytest.fixture(scope="module")
def encoder(model):
    return Encoder(model)


def written(folder, lines=TEXT):
    return write_lines(folder / "corpus.txt", lines)


@pytest.fixture(scope="module")
def served(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("served")
    with Served(folder, "--model", model, "--index", written(folder), "--build") as server:
        yield server


def embeddings(server, texts, **more):
    """Status and answer of a request for vectors."""
    return server.json("POST", "/v1/embeddings", {"input": texts, "model": "toy"} | more)


def answered(steps):
    *_, answer = steps
    return answer


# --- search


@pytest.mark.parametrize("query", ["kalo ne", TEXT[7], "दुनिया", "a&k=1 #%?+"])
def test_a_search_finds_the_lines_of_the_command(served, model, tmp_path, query):
    words = ("search", "--model", model, "--index", written(tmp_path), "--k", "7", query)
    expected, _ = Cli(tmp_path).run(*words)
    status, answer = served.json("GET", f"/search?k=7&q={quote(query, safe='')}")
    assert {hit["language"] for hit in answer["results"]} == {None}
    hits = [(hit["score"], hit["number"], hit["line"]) for hit in answer["results"]]
    rows = [f"{score:.4f}\t{number}\t{line}" for score, number, line in hits]
    for row, line in zip(rows, expected.split("\n")[:-1], strict=True):
        assert row == line or (row.endswith("…") and line.startswith(row[:-1]))
    assert (status, answer["query"], answer["k"], answer["lines"]) == (200, query, 7, len(TEXT))
    assert answer["seconds"] >= 0


def test_a_long_line_is_cut_and_an_empty_text_finds_nothing(served, encoder, tmp_path):
    lines = [hit["line"] for hit in served.json("GET", "/search?k=100&q=ka")[1]["results"]]
    assert (len(lines), max(map(len, lines))) == (len(TEXT), LINE_CHARACTERS + 1)
    with index_of(encoder, TextInput(written(tmp_path, []))) as empty:
        assert json.loads(answered(Service(encoder, empty).search("q=ka")).body)["results"] == []


def test_a_query_may_stand_in_the_address_as_plain_utf8(served):
    """curl sends it so; h11 takes only ASCII."""
    with connected(served) as connection:
        connection.sendall("GET /search?q=नमस्ते HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert json.loads(answer_on(connection))["query"] == "नमस्ते"


def connected(server):
    return socket.create_connection(("127.0.0.1", urlsplit(server.url).port), MOST)


def answer_on(connection):
    """What comes after the head of the answer."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b"")).split(b"\r\n\r\n", 1)[-1]


@pytest.mark.parametrize("dimensions", [None, 1, 5, 16])
@pytest.mark.parametrize("texts", ["Kalo", TEXT, ["\0 ka\nlo\r\n", ""]], ids=["one", "all", "odd"])
def test_vectors_are_those_of_the_encoder_bit_by_bit(served, encoder, texts, dimensions):
    lines = [texts] if isinstance(texts, str) else texts
    expected = encoder.encode(lines, normalise=True, dimensions=dimensions or 0)
    more = {"encoding_format": "base64", "dimensions": dimensions, "user": "me"}
    status, answer = embeddings(served, texts, **more)
    rows = [base64.b64decode(each["embedding"]) for each in answer["data"]]
    assert status == 200
    assert b"".join(rows) == np.ascontiguousarray(expected).tobytes()
    _, plain = embeddings(served, texts, dimensions=dimensions)
    numbers = np.array([each["embedding"] for each in plain["data"]], np.float32)
    assert numbers.tobytes() == b"".join(rows)
    lengths = np.linalg.norm(numbers, axis=1)  # 0 of a text without a known piece
    np.testing.assert_allclose(lengths[lengths > 0], 1, atol=1e-6)
    assert (lengths > 0).tolist() == expected.any(axis=1).tolist()


def test_the_answer_has_the_shape_of_the_api_and_nothing_else(served, encoder):
    _, answer = embeddings(served, TEXT[:3])
    tokens = sum(encoder.token_counts(TEXT[:3]))
    vectors = [row.pop("embedding") for row in answer["data"]]
    rows = [{"object": "embedding", "index": at} for at in range(3)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    assert answer == {"object": "list", "data": rows, "model": "toy", "usage": usage}
    assert [len(vector) for vector in vectors] == [16] * 3
    assert tokens > 3
    status, models = served.json("GET", "/v1/models")
    own = {"id": "toy", "object": "model", "created": models["data"][0]["created"]}
    assert models == {"object": "list", "data": [own | {"owned_by": "ems"}]}
    assert status == 200


def test_the_language_comes_from_the_request_or_the_flag(model, tmp_path):
    own = Encoder(write_segmented(tmp_path / "toy", model))
    service = Service(own)
    body = {"model": "toy", "input": ["Kalo, kalo."]}
    with pytest.raises(HTTPException) as error:
        answered(service.embeddings(json.dumps(body).encode()))
    assert "expected the language" in error.value.detail["message"]
    for code in ("de", "en"):
        steps = service.embeddings(json.dumps(body | {"language": code}).encode())
        answer = json.loads(answered(steps).body)
        row = np.array(answer["data"][0]["embedding"], np.float32)
        assert (row == own.encode(["Kalo, kalo."], code, normalise=True)[0]).all()
    with index_of(own, TextInput(written(tmp_path, TEXT[:9]), ("de",))) as index:
        service = Service(own, index, "de", "en")
        assert answered(service.search("q=ka")).status_code == 200
        assert answered(service.embeddings(json.dumps(body).encode())).status_code == 200
    with pytest.raises(EmsError, match="was trained for"):
        Service(own, query_language="xx")


# --- rejected requests

LONG, API = "a" * (TEXT_CHARACTERS + 1), "/v1/embeddings"
REFUSED = yaml.safe_load((ROOT / "tests/requests.yaml").read_text(encoding="utf-8"))
REFUSED += [
    ("POST", "/", b"a" * 100_000, 405, None, "expected GET"),
    ("GET", f"/search?q={LONG}", None, 400, "q", "at most 32,768 characters"),
    ("GET", f"/search?q={'a' * 70_000}", None, 414, None, ""),
    ("GET", f"/search?{'&a=1' * 50}", None, 400, None, "expected q and k"),
    *(("POST", API, b, 400, None, "a body of JSON") for b in (b"\xff", b"[" * 10**5, b"9" * 9999)),
    ("POST", API, {"input": ["a"] * (INPUTS + 1)}, 400, "input", "at most 2,048 texts"),
    ("POST", API, {"input": ["a", LONG]}, 400, "input", "at most 32,768 characters"),
]


@pytest.mark.parametrize("request_", REFUSED, ids=lambda request: str(request)[:60])
def test_a_bad_request_is_an_error_in_the_shape_of_the_api(served, request_):
    method, path, body, expected, param, words = request_
    body = {"model": "toy"} | body if isinstance(body, dict) else body
    status, answer = served.json(method, path, body.encode() if isinstance(body, str) else body)
    kind, error = "invalid_request_error" if status < 500 else "server_error", answer["error"]
    own = {"message": error["message"], "type": kind, "param": param, "code": error["code"]}
    assert (status, answer) == (expected, {"error": own})
    assert words in error["message"]
    assert len(error["message"]) < 500


HEADS = yaml.safe_load((ROOT / "tests/heads.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_is_not_clear_is_rejected(served, name):
    expected, words, lines = HEADS[name]
    with connected(served) as connection:
        connection.sendall("\r\n".join([*lines, ""]).replace("LONG", "a" * HEAD).encode())
        status, answer = connection.recv(12), answer_on(connection)
    assert status == b"HTTP/1.1 %d" % expected
    assert words in json.loads(answer)["error"]["message"]


def test_no_answer_names_a_folder_of_the_server(served, encoder, tmp_path):
    for more in ({"language": "xx"}, {"dimensions": 17}):
        message = embeddings(served, "a", **more)[1]["error"]["message"]
        assert "/" not in message
    for name in ("/a/b c.txt", "~/c.txt", "'/a/c.txt'", "(/a/c.txt)", f"{encoder.model}/c.txt"):
        message = Service(encoder)._without_folders(EmsError(f"no {name}: a/b"))
        assert re.fullmatch(r"no ['(]?(b |toy/)?c\.txt['\)]?: a/b", message)


def test_requests_at_the_limits_are_answered(served):
    assert len(embeddings(served, ["a"] * INPUTS)[1]["data"]) == INPUTS
    assert embeddings(served, "a" * TEXT_CHARACTERS)[0] == 200
    body = json.dumps({"input": "a", "model": "toy"}).encode()
    assert served.json("POST", "/v1/embeddings", body.ljust(BODY))[0] == 200
    status, answer = served.json("POST", "/v1/embeddings", body.ljust(BODY + 1))
    assert (status, "at most 4,194,304 bytes" in answer["error"]["message"]) == (413, True)


def test_head_is_get_without_a_body_and_other_methods_are_told_so(served):
    status, headers, _ = served.ask("PUT", "/")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    status, headers, content = served.ask("HEAD", "/v1/models")
    assert (status, content, int(headers["Content-Length"]) > 50) == (200, b"", True)


def test_names_of_the_loopback_are_hosts(served):
    for host in ("localhost", "localhost:1", "127.0.0.1:80", "[::1]:80", "[::1]"):
        assert served.json("GET", "/v1/models", Host=host)[0] == 200


def test_on_another_address_any_name_is_one_and_the_log_warns(model, tmp_path):
    with Served(tmp_path, "--model", model, "--host", "0.0.0.0") as server:
        assert "no password" in server.log.read_text()
        port = urlsplit(server.url).port
        answer = ask(f"http://127.0.0.1:{port}/", "GET", "/v1/models", Host="a.example")
        assert answer[0] == 200


def test_no_other_origin_may_read_and_no_other_script_may_run(served):
    names = ("X-Content-Type-Options", "Cross-Origin-Resource-Policy", "Server")
    for path in ("/", "/v1/models", "/nothing"):
        _, headers, content = served.ask("GET", path, Origin="https://evil.example")
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert [headers[name] for name in names] == ["nosniff", "same-origin", "ems"]
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'; frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert ("script-src 'sha256-" in policy) == (path == "/") == content.startswith(b"<!doc")


def test_the_log_holds_no_query_or_text(served):
    served.ask("GET", "/search?q=secretword")
    embeddings(served, "secretword")
    log = served.log.read_text()
    assert "GET /search 200" in log
    assert "secretword" not in log


PARTS = [
    *("GET", "POST", " ", "/", "/search", "?q=", "ka", "&k=", "3", "/v1/embeddings", " HTTP/1.1"),
    *("\r\n", "Host: localhost", "Host: ", "Content-Length: ", "9", "\r\n\r\n", "Expect: x", ":"),
    *("{}", '{"input": "a", "model": "toy"}', " HTTP/9.9", " HTTP/1.0", "\0", "é", "[", "//", "\n"),
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=5)), max_size=14))
def test_any_bytes_are_answered_or_dropped(served, parts):
    with connected(served) as connection:
        connection.sendall("".join(parts).encode("utf-8", "replace"))
        connection.shutdown(socket.SHUT_WR)
        content = answer_on(connection)
    assert not content or content.startswith((b"<!doctype", b"{"))
    assert served.process.poll() is None
    assert "Traceback" not in served.log.read_text()


# --- many at once


def test_answers_do_not_depend_on_other_requests(served):
    def one(at):
        if at % 2:
            return served.json("GET", f"/search?q={TEXT[at % 7]}")[1]["results"]
        return embeddings(served, TEXT[at % 7 :], encoding_format="base64")

    alone = [one(at) for at in range(14)]
    with ThreadPoolExecutor(40) as pool:
        assert list(pool.map(one, range(14 * 15))) == alone * 15


def test_a_flood_starts_no_more_threads_and_is_over_when_it_ends(served):
    served.json("GET", "/search?q=ka")
    flood = [connected(served) for _ in range(100)]
    try:
        for connection in flood:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        assert len(os.listdir(f"/proc/{served.process.pid}/task")) < serve.CONNECTIONS + 15
    finally:
        for connection in flood:
            connection.close()
    assert served.json("GET", "/search?q=ka")[0] == 200


WAIT, SHORT = ({"input": text, "model": "slow"} for text in ("wait", "short"))
UNFINISHED = [b"GET / HTTP/1.1\r\nHost: "]
UNFINISHED += [
    f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n{'{' * 900}".encode()
    for line, size in ((f"POST {API}", 10**6), ("POST /", 10**6), ("GET /", 10**9))
]  # the last two are rejected


def test_a_request_that_has_arrived_is_answered_after_the_end(slow):
    encoder, server = slow
    with ThreadPoolExecutor(1) as pool, connected(server) as idle:
        answer = pool.submit(ask_json, server.url, "POST", "/v1/embeddings", WAIT)
        assert encoder.asked.wait(MOST)
        begun = [connected(server) for _ in UNFINISHED]
        for connection, content in zip(begun, UNFINISHED, strict=True):
            connection.sendall(content)
        assert ask_json(server.url, "GET", "/health") == (200, {"status": "ok"})
        server.should_exit = True
        for connection in [idle, *begun]:  # the server does not wait for unfinished requests
            assert connection.recv(9) == b""
            connection.close()
        encoder.let.set()
        assert answer.result(MOST)[0] == 200
        server.running.join(MOST)
        assert not server.running.is_alive()


def test_a_request_that_does_not_arrive_times_out(slow, monkeypatch):
    """Its time counts from the connection: bytes that drip do not prolong it."""
    _, server = slow
    monkeypatch.setattr("ems.use.connection.READING", 0.5)
    begun = {connected(server): content for content in [b"", *UNFINISHED * 9]}
    assert len(begun) > serve.CONNECTIONS
    for connection, content in begun.items():
        connection.sendall(content)
    assert ask_json(server.url, "GET", "/v1/models")[0] == 200
    for connection, content in begun.items():
        with connection, suppress(ConnectionError):  # it may be reset while we send
            while content and not select.select([connection], [], [], 0.01)[0]:
                connection.sendall(b"a")
            ends = (b"408", b"413", b"405") if content else (b"",)
            assert connection.recv(12)[-3:] in ends


@pytest.mark.parametrize("limits", [{"MOST": 20}, {"HELD": 4_000, "SMALL": 100}])
def test_slow_clients_keep_no_one_out(slow, monkeypatch, limits):
    """Above a limit the oldest requests that have not arrived are dropped."""
    _, server = slow
    for name, value in limits.items():
        monkeypatch.setattr(f"ems.use.connection.{name}", value)
    with ExitStack() as stack:
        for content in UNFINISHED * 15:
            connection = stack.enter_context(connected(server))
            connection.sendall(content)
            assert ask_json(server.url, "POST", API, SHORT)[0] == 200
        assert len(server.server_state.connections) < 60


def test_hundreds_of_slow_clients_are_no_burden(served):
    with ExitStack() as stack:
        for content in UNFINISHED * 150:
            stack.enter_context(connected(served)).sendall(content)
        assert served.json("GET", "/search?q=ka")[0] == 200


def test_a_short_request_passes_a_long_one(slow):
    encoder, server = slow
    long = {"input": ["wait"] + ["long"] * (INPUTS - 1), "model": "slow"}
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask_json, server.url, "POST", API, long)]
        assert encoder.asked.wait(MOST)
        answers.append(pool.submit(ask_json, server.url, "POST", API, SHORT))
        while sum(one.arrived for one in list(server.server_state.connections)) < 2:
            time.sleep(0.01)
        encoder.let.set()
        assert [answer.result(MOST)[0] for answer in answers] == [200, 200]
    assert "long" in encoder.lines[encoder.lines.index("short") :]


def test_an_internal_error_is_answered_and_logged(slow, caplog):
    _, server = slow
    internal = "internal error; see the log of ems serve"
    for text, message in (("nan", "slow: the vectors are not finite"), ("fail", internal)):
        status, answer = ask_json(server.url, "POST", API, {**SHORT, "input": text})
        assert (status, answer["error"]["type"]) == (500, "server_error")
        assert answer["error"]["message"] == message
    assert "ZeroDivisionError" in caplog.text
    assert ask_json(server.url, "GET", "/v1/models")[0] == 200


def test_a_client_that_disconnects_is_no_error(slow, caplog):
    encoder, server = slow
    with connected(server) as connection:
        body = json.dumps(WAIT).encode()
        head = f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
        assert encoder.asked.wait(MOST)
    encoder.let.set()
    assert ask_json(server.url, "GET", "/v1/models")[0] == 200
    assert "rror" not in caplog.text


# --- start and end


def test_ctrl_c_ends_it_with_status_0_and_leaves_nothing(model, tmp_path):
    """As SIGTERM does: `Served` stops by it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("--model", model, "--index", written(tmp_path))
    server = Served(tmp_path, *words, env={**os.environ, "TMPDIR": str(scratch)})
    assert list(scratch.glob("ems-*"))
    with connected(server):  # idle, as a browser keeps one
        server.json("GET", "/search?q=ka")
        assert server.stop(signal.SIGINT) == 0
    assert not list(scratch.iterdir())
    assert "Traceback" not in server.log.read_text()


CHANGES = {
    "the text is another": lambda index: written(index.corpus.parent, TEXT[1:]),
    "the text is gone": lambda index: index.corpus.unlink(),
    "the vectors are cut": lambda index: os.truncate(index._vectors.filename, 200),
    "the vectors are gone": lambda index: os.unlink(index._vectors.filename),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_index_is_built_and_is_only_for_its_text(served, encoder, tmp_path, change):
    assert (served.log.parent / "corpus.txt.index" / "index.json").is_file()
    with index_of(encoder, TextInput(written(tmp_path))) as index:
        change(index)
        with pytest.raises(HTTPException, match="503") as error:
            answered(Service(encoder, index).search("q=ka"))
    assert "has changed since" in error.value.detail["message"]
    assert "/" not in error.value.detail["message"]


def test_the_page_says_what_it_searches_and_shows_names_as_text(encoder, tmp_path):
    with pytest.raises(HTTPException, match="404") as error:
        answered(Service(encoder).search("q=ka"))
    assert "start ems serve with --index" in error.value.detail["message"]
    assert about(Service(encoder))["lines"] is None
    corpus = written(tmp_path).rename(tmp_path / '<i>&{{ABOUT}}".txt')
    with index_of(encoder, TextInput(corpus)) as index:
        page = serve.page_of(Service(encoder, index)).body.decode()
        known = about(Service(encoder, index))
    assert "<i>" not in page
    assert (known["corpus"], known["lines"], known["model"]) == (corpus.name, len(TEXT), "toy")
    assert known["examples"] == [TEXT[row] for row in (5, 16, 27, 38, 49)]


def about(service):
    """What the page knows of the server: JSON in an attribute."""
    (value,) = re.findall('data-about="(.*?)"', serve.page_of(service).body.decode())
    return json.loads(html.unescape(value))


def test_a_port_in_use_is_an_error_and_signals_are_as_before(served, model, tmp_path):
    port, before = urlsplit(served.url).port, signal.getsignal(signal.SIGTERM)
    message = Cli(tmp_path).error("serve", "--model", model, "--port", port)
    assert f"--port {port}: cannot listen there (Address already in use)" in message
    assert signal.getsignal(signal.SIGTERM) is before
