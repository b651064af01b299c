"""Servers on this machine: `ems serve`, SSH and S3 for remotes of DVC, and a proxy that breaks."""

import http.client
import json
import signal
import subprocess
import sys
from urllib.parse import quote, urlsplit

# --- ems serve


MOST = 60  # seconds that an answer may take: a server that hangs fails the test


def ask(url, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=MOST)
    try:
        connection.request(method, quote(path, safe="/?=&%"), body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def ask_json(url, method, path, body=None, **headers):
    """The status of an answer in JSON, and the JSON; the body of the request is JSON too."""
    given = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    status, head, content = ask(url, method, path, given, **headers)
    assert head["Content-Type"] == "application/json"
    return status, json.loads(content)


class Served:
    """A server on a free port of the loopback; its log is a file in `folder`."""

    def __init__(self, folder, *words, python=sys.executable, **options):
        self.log = folder / "serve.log"
        command = [python, "-m", "ems", "serve", "--port", "0", *words]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [*map(str, command)], cwd=folder, stdout=subprocess.PIPE, stderr=log, **options
            )
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url.startswith("http://"), self.log.read_text()

    def ask(self, *words, **headers):
        return ask(self.url, *words, **headers)

    def json(self, *words, **headers):
        return ask_json(self.url, *words, **headers)

    def stop(self, number=signal.SIGTERM):
        """The exit status after a signal."""
        self.process.send_signal(number)
        try:
            return self.process.wait(MOST)
        finally:
            self.process.kill()
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert self.stop() == 0, self.log.read_text()
