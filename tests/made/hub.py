"""A Hugging Face hub on this machine: the calls by which huggingface_hub creates a repository and
commits a folder to it."""

import base64
import hashlib
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import yaml
from made.web import Server

TOKEN = "hf_right"


class Hub(BaseHTTPRequestHandler):
    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_one(self):
        hub, body = self.server, self.body()
        hub.calls.append(f"{self.command} {self.path}")
        stored = self.path.startswith("/store/")  # as on S3, without the token
        if not stored and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid credentials"})
        if stored:
            hub.objects[hashlib.sha256(body).hexdigest()] = body
            return self.answer(200, {})
        if self.path == "/api/repos/create":
            return self.create(json.loads(body))
        if self.path == "/api/validate-yaml":
            matter = yaml.safe_load(json.loads(body)["content"].split("---\n")[1])
            return self.answer(200, {"errors": [], "warnings": []} if matter else {})
        call, repo = self.parsed()
        if repo not in hub.repos:
            return self.answer(404, {"error": "Repository not found"})
        return getattr(self, call)(hub.repos[repo], body)

    do_GET = do_POST = do_PUT = handle_one

    def parsed(self):
        if found := re.fullmatch(r"/(.+)\.git/info/lfs/objects/batch", self.path):
            return "batch", found[1]
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/main.*", self.path)
        return (found[2], found[1]) if found else ("", "")

    def create(self, asked):
        name = f"{asked['organization']}/{asked['name']}"
        status = 409 if name in self.server.repos else 200
        if asked["organization"] == "others":
            return self.answer(403, {"error": "Forbidden"})
        made = {"private": asked.get("visibility") == "private", "files": {}}
        self.server.repos.setdefault(name, made)
        return self.answer(status, {"url": f"{self.server.address}/{name}"})

    def preupload(self, repo, body):
        modes = {True: "lfs", False: "regular"}
        files = [
            {"path": f["path"], "uploadMode": modes[f["size"] > 20_000], "shouldIgnore": False}
            for f in json.loads(body)["files"]
        ]
        self.answer(200, {"files": files})

    def batch(self, repo, body):
        for each in (objects := json.loads(body)["objects"]):
            href = f"{self.server.address}/store/{each['oid']}"
            if self.server.broken:
                each["error"] = {"code": 507, "message": "the disk is full"}
            else:
                each["actions"] = {"upload": {"href": href}}
        self.answer(200, {"transfer": "basic", "objects": objects})

    def commit(self, repo, body):
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                repo["files"][value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                repo["files"][value["path"]] = self.server.objects[value["oid"]]
        address = f"{self.server.address}/me/ems/commit/{'0' * 40}"
        self.answer(200, {"commitUrl": address, "commitOid": "0" * 40})

    def log_message(self, *args):
        pass


@contextmanager
def local_hub():
    """A hub with `repos` (name -> its files, private), the `calls` it got, and `broken` storage."""
    server = Server(Hub)
    server.repos, server.objects, server.calls, server.broken = {}, {}, [], False
    with server.running():
        yield server
