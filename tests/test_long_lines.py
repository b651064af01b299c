"""Laws of long lines: two hundred lines of a megabyte in a row take no more memory than a few of
them, and come out as they would in any other batches."""

import random
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT
from made.shards import vocabulary
from made.text import passed

from ems.base import batches
from ems.base.files import sha256_file
from ems.shards.writer import write_shards
from ems.text.filters import CleanReport
from ems.text.tsv import read_columns, read_tsv

LINES, WORDS = 200, 10_000  # a line has so many words of a hundred bytes
BOUND = 200 << 20  # bytes of RssAnon; what all lines take is more

WATCHED = """
import re, sys, threading, time
from collections import Counter
from pathlib import Path

peak = 0

def watch():
    global peak
    while True:
        status = Path("/proc/self/status").read_text()
        peak = max(peak, int(re.search(r"RssAnon:\\s+(\\d+)", status)[1]) * 1024)
        time.sleep(0.005)

{imports}
threading.Thread(target=watch, daemon=True).start()
source, out = Path(sys.argv[1]), Path(sys.argv[2])
{work}
print(peak)
"""
CLEAN = """
report = CleanReport(read={lines})
pairs = ((a, b, at) for at, (a, b) in enumerate(read_pairs(source, "X", "de-en"), start=1))
with open(out, "w", encoding="utf-8") as writer:
    clean = passed(pairs, report)
    writer.writelines(f"{{a}}\\t{{b}}\\t{{line}}\\n" for a, b, line in clean)
"""


@pytest.fixture(scope="module")
def texts():
    """The first sides: each a megabyte, no two the same."""
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghé", k=98)) for _ in range(300)]
    line = draw.choices(words, k=WORDS)
    return [" ".join([*line[at:], *line[:at]]) for at in range(LINES)]


def peak_of(imports, work, source, out):
    """The most RssAnon of a process that does some work, in bytes."""
    text = WATCHED.format(imports=imports, work=work)
    done = subprocess.run(
        [sys.executable, "-c", text, str(source), str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_cleaning_holds_a_few_of_them(texts, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("X.de-en.de", "".join(f"{text}\n" for text in texts))
        archive.writestr("X.de-en.en", "".join(f"side {at}\n" for at in range(LINES)))
    imports = "from ems.corpora.moses import read_pairs\n"
    imports += f"sys.path.append({str(ROOT / 'tests')!r})\nfrom made.text import passed\n"
    imports += "from ems.text.filters import CleanReport"
    work = CLEAN.format(lines=LINES)
    peak = peak_of(imports, work, tmp_path / "x.zip", tmp_path / "out.tsv")
    expected = [(text, f"side {at}", at + 1) for at, text in enumerate(texts)]
    assert list(read_tsv(tmp_path / "out.tsv")) == expected
    assert sum(len(text.encode()) for text in texts) > BOUND * 0.9
    assert peak < BOUND


def test_shards_hold_a_few_of_them(texts, tmp_path):
    model = vocabulary(tmp_path / "v.model", 200)
    source = tmp_path / "de-en.tsv"
    with open(source, "w", encoding="utf-8") as writer:
        writer.writelines(f"{text}\tside {at}\t{at + 1}\n" for at, text in enumerate(texts))
    imports = "from ems.shards.writer import write_shards"
    work = f"write_shards(source, Path({str(model)!r}), out)"
    assert peak_of(imports, work, source, tmp_path / "shards") < BOUND


def test_batches_end_by_their_number_and_by_their_length(monkeypatch):
    monkeypatch.setattr(batches, "CHARACTERS", 10)
    items = ["a" * size for size in (3, 3, 3, 3, 25, 1, 1, 1, 1, 10, 2)]
    sizes = [[len(item) for item in batch] for batch in batches.batched(items, len, 4)]
    assert sizes == [[3, 3, 3, 3], [25], [1, 1, 1, 1], [10], [2]]
    assert list(batches.batched([], len)) == []


def test_batches_change_no_byte_of_what_is_made_of_them(tmp_path, monkeypatch):
    draw = random.Random(4)
    model = vocabulary(tmp_path / "v.model", 200)
    sizes = [draw.choice([1, 3, 300]) for _ in range(500)]
    pairs = [(" ".join("ab" * draw.randint(1, 4) for _ in range(n)), "b", 7) for n in sizes]
    made = []
    for limit in (1, 100, 1000, batches.CHARACTERS):
        monkeypatch.setattr(batches, "CHARACTERS", limit)
        folder = tmp_path / str(limit)
        folder.mkdir()
        report = CleanReport(read=len(pairs))
        clean = list(passed(iter(pairs), report, known={"abab": ("t",)}))
        source = folder / "de-en.tsv"
        source.write_text("".join(f"{a}\t{b}\t{line}\n" for a, b, line in clean))
        assert sum(len(columns[0]) for columns in read_columns(source)) == len(clean)
        write_shards(source, model, folder / "shards")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        made.append(
            [report.removed, *((str(p.relative_to(folder)), sha256_file(p)) for p in files)]
        )
    assert made[0] == made[1] == made[2] == made[3]
