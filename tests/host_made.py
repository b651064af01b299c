"""A web server for the tests that fetch."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Serves `answers`: path -> (status, headers, body)."""

    answers: dict


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, headers, body = self.server.answers.get(self.path, (404, {}, b"gone"))
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def host(answers):
    """The address of a web server that gives these answers."""
    server = Server(("127.0.0.1", 0), Handler)
    server.answers = answers
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def source_of(kind, folder):
    """The files of a folder as a source: itself, or a web server that serves them."""
    if kind == "directory":
        yield str(folder)
    else:
        answers = {
            f"/{path.relative_to(folder)}": (200, {}, path.read_bytes())
            for path in folder.rglob("*.*")
            if path.is_file()
        }
        with host(answers) as address:
            yield address
