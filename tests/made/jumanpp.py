"""A stand-in for Juman++ 2, which cannot be installed everywhere: it fails as the real one does.

What is known of `jumanpp --segment` (measured on a build of its source): it drops a line that
begins with `# ` and a line over 4,096 bytes without a word on stdout and with exit status 0; a
half-width space becomes a token of its own; half-width kana are one token each, full-width ones a
word; empty lines, `#` alone, `EOS`, tabs, control characters and emoji come through.

Without `--segment`, as pyknp starts it, it answers a line with a line for each word and `EOS`, a
line over 4,096 bytes with `EOS` alone, and `# ` or a line over 65,535 bytes not at all. pyknp loses
words that begin with `#` and cannot read those that hold a space.
"""

import os
import sys
from pathlib import Path

from conftest import write_program

PROGRAM = """#!{python}
import os, re, sys, time

def segmented(line):
    words = re.findall(r"[ァ-ヴー]+|\\(\\^ ?\\^\\)|.", line.decode(), re.DOTALL)
    return ["\\\\\u2423" if word == " " else word for word in words]

def say(text):
    sys.stdout.buffer.write((text + "\\n").encode())
    sys.stdout.buffer.flush()

def word(text):
    if text == "(^^)":
        return "(^^) (^ ^) (^^) 特殊 1 記号 5 * 0 * 0 NIL"
    return f'{{text}} {{text}} {{text}} 名詞 6 普通名詞 1 * 0 * 0 "代表表記:{{text}}/{{text}}"'

def answer(line):
    if line.startswith(b"# ") or len(line) > 65535:
        return
    text = line.decode()
    if {slow!r} and {slow!r} in text:
        time.sleep(3)
    if {dead!r} and {dead!r} in text:
        sys.exit(1)
    for one in segmented(line) if len(line) <= 4096 else ():
        say(word("x" if one == {wrong!r} else one))
        if re.match("[ァ-ヴー]", one):
            say("@ " + word(one))  # another reading
    say("EOS")

with open({log!r}, "a") as log:
    log.write(" ".join([str(os.getpid()), str(os.getppid()), *sys.argv[1:]]) + "\\n")
if sys.argv[1:] != ["--segment"]:
    assert not sys.argv[1:], sys.argv
    for line in sys.stdin.buffer:
        answer(line.removesuffix(b"\\n"))
    sys.exit()
for number, line in enumerate(sys.stdin.buffer):
    line = line.removesuffix(b"\\n")
    if line.startswith(b"# ") or {drop}:
        continue  # without a word
    if len(line) > 4096:
        print("too long", file=sys.stderr)
        continue  # and the exit status is 0
    say(" ".join(segmented(line)))
{end}
"""


def put_jumanpp(folder: Path, monkeypatch, **flags: str) -> Path:
    """Put a `jumanpp` on PATH; `drop`: which other lines `--segment` drops, `end`: how it ends.

    `slow`, `dead`, `wrong`: a character at which the answer to pyknp takes 3 seconds, at which it
    ends, which it takes for another one. Each start is a line of the file `jumanpp.log` beside it:
    its process, who started it, its flags.
    """
    program = folder / "bin" / "jumanpp"
    plain = {"drop": "False", "end": "", "slow": "", "dead": "", "wrong": ""}
    plain |= {"python": sys.executable, "log": str(program.with_name("jumanpp.log"))}
    write_program(program, PROGRAM.format(**plain | flags))
    path = os.environ["PATH"]
    if str(program.parent) not in path.split(os.pathsep):
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{path}")
    return program
