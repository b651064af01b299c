"""A stand-in for Juman++ 2, which cannot be installed everywhere: it fails as the real one does.

What is known of `jumanpp --segment` (measured on a build of its source): it drops a line that
begins with `# ` and a line over 4,096 bytes without a word on stdout and with exit status 0; a
half-width space becomes a token of its own; half-width kana are one token each, full-width ones a
word; empty lines, `#` alone, `EOS`, tabs, control characters and emoji come through.
"""

import os
import re
import sys
from pathlib import Path

PROGRAM = """#!{python}
import re, sys
assert sys.argv[1:] == ["--segment"], sys.argv
for number, line in enumerate(sys.stdin.buffer):
    line = line.removesuffix(b"\\n")
    if line.startswith(b"# ") or {drop}:
        continue  # without a word
    if len(line) > 4096:
        print("too long", file=sys.stderr)
        continue  # and the exit status is 0
    words = re.findall("[ァ-ヴー]+|.", line.decode(), re.DOTALL)
    words = ["\\\\\u2423" if word == " " else word for word in words]
    sys.stdout.buffer.write((" ".join(words) + "\\n").encode())
{end}
"""


def put_jumanpp(folder: Path, monkeypatch, drop: str = "False", end: str = "") -> Path:
    """Put a `jumanpp` on PATH; `drop`: which other lines it drops, `end`: how it ends."""
    program = folder / "bin" / "jumanpp"
    program.parent.mkdir(exist_ok=True)
    text = PROGRAM.format(python=sys.executable, drop=drop, end=end)
    assert re.match("#!/", text)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    path = os.environ["PATH"]
    if str(program.parent) not in path.split(os.pathsep):
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{path}")
    return program
