"""Measure `ems serve` under load: answers per second, their times, and the growth of its memory.

    python perf/serve_load.py [--demo] [--model FOLDER] [--clients 64] [--requests 5000]

Each client asks again as soon as it has its answer, with a new connection. In turn, a request is a
search and 1 to 8 texts to encode, and every hundredth is 512 texts. Memory is RssAnon, after a
tenth of the requests and at the end. The default model is tiny and untrained. An answer that is not
200 makes the script fail.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import numpy as np
import torch
from measured import anon, demo_lines, say
from pairs_made import ROOT
from safetensors.torch import save_file

from ems.base.files import ENCODER, VOCABULARY, sha256_file, write_json
from ems.config.model import EncoderSettings
from ems.config.text import VocabularySettings
from ems.model.encoder import Encoder
from ems.text.subwords import train_vocabulary

SIZES = {"layers": 2, "width": 64, "heads": 2, "feed_forward": 128, "max_tokens": 64}
SIZES |= {"dropout": 0.1, "attention_dropout": 0.1}
LANGUAGES, PIECES = ("de", "en"), 300
LONG = 512  # texts of a long request


def made_model(folder: Path, lines: list[str]) -> Path:
    """Write a tiny model without training, with a vocabulary of the lines."""
    folder.mkdir()
    sample = folder.parent / "sample.txt"
    sample.write_text("".join(f"{line.lower()}\n" for line in lines), "utf-8")
    wanted = VocabularySettings.model_construct(size=PIECES, character_coverage=1.0)
    settings = SimpleNamespace(vocabulary=wanted, languages=LANGUAGES)
    pieces = train_vocabulary(settings, sample, folder / VOCABULARY)
    torch.manual_seed(1)
    save_file(Encoder(EncoderSettings(**SIZES), pieces).state_dict(), folder / ENCODER)
    about = {"model": SIZES, "languages": LANGUAGES}
    about |= {"segmenters": dict.fromkeys(("und", *LANGUAGES), "none")}
    about |= {"sha256": {name: sha256_file(folder / name) for name in (ENCODER, VOCABULARY)}}
    write_json(folder / "model.json", about)
    return folder


@dataclass(frozen=True)
class Load:
    """Requests to a server: their texts, and the name of its model."""

    address: str
    model: str
    lines: list[str]

    def ask(self, number: int) -> tuple[int, float]:
        """Send request `number`; return its status (0: no answer) and its milliseconds."""
        query = quote(self.lines[number % len(self.lines)])
        method, path, body = "GET", f"/search?q={query}", None
        if number % 2:
            count = LONG if number % 100 == 1 else 1 + number % 8
            texts = [self.lines[(number + at) % len(self.lines)] for at in range(count)]
            method, path = "POST", "/v1/embeddings"
            body = json.dumps({"model": self.model, "input": texts})
        started = time.monotonic()
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            answer.read()
            status = answer.status
        except (OSError, http.client.HTTPException):
            status = 0
        finally:
            connection.close()
        return status, 1000 * (time.monotonic() - started)


def measured(load: Load, pid: int, options: argparse.Namespace) -> dict[str, float]:
    """Send all requests and return the figures."""
    first = options.requests // 10
    with ThreadPoolExecutor(options.clients) as clients:
        answers = list(clients.map(load.ask, range(first)))
        before, started = anon(pid), time.monotonic()
        answers += clients.map(load.ask, range(first, options.requests))
        seconds, after = time.monotonic() - started, anon(pid)
    statuses, times = np.array(answers).T
    return {
        "answers_per_s": (options.requests - first) / seconds,
        "p50_ms": float(np.percentile(times, 50)),
        "p99_ms": float(np.percentile(times, 99)),
        "rss_anon_mb": after / 1e6,
        "growth_pct": 100 * (after - before) / before,
        "errors": int((statuses != 200).sum()),
    }


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--demo", action="store_true", help="100 requests of 8 clients")
    parser.add_argument("--model", type=Path, help="a model that needs no language of a text")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=1, help="of which the last one counts")
    parser.add_argument("--out", type=Path, default=ROOT / "results/perf/serve_load.json")
    options = parser.parse_args()
    if options.demo:
        options.clients, options.requests = 8, 100
    return options


def main() -> None:
    options = options_of()
    lines = [english for english, _ in demo_lines("de")]
    with tempfile.TemporaryDirectory() as name:
        text = Path(name) / "lines.txt"
        text.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        model = (options.model or made_model(Path(name) / "tiny", lines)).resolve()
        command = [sys.executable, "-m", "ems", "serve", "--port=0", "--model", str(model)]
        command += ["--index", str(text)]
        log = Path(name) / "log"
        with open(log, "w") as stderr:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            if not (address := urlsplit(server.stdout.readline().strip()).netloc):
                sys.exit(f"the server did not start: {log.read_text()}")
            load = Load(address, model.name, lines)
            for _ in range(options.repeats):
                figures = measured(load, server.pid, options)
        finally:
            server.terminate()
            server.communicate()
    write_json(options.out, {"clients": options.clients, "requests": options.requests, **figures})
    for label, value in figures.items():
        say(f"{label:20}{value:10,.2f}")
    if figures["errors"]:
        sys.exit(f"{figures['errors']:,} of {options.requests:,} answers were errors")
    shown = ("answers_per_s", "p50_ms", "p99_ms", "rss_anon_mb")
    say(" ".join(f"{label}={figures[label]:.2f}" for label in shown))


if __name__ == "__main__":
    main()
