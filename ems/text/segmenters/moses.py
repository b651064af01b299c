"""The Moses tokenizer in Perl, as the package mosestokenizer carries it.

`moses` runs without `-a` and without escapes, as the authors did according to the vocabulary of
their released model. Other flags have names of their own. With `-a`, a hyphen between letters
becomes `@-@`; with escapes, an apostrophe becomes `&apos;`.
"""

import shutil
import subprocess
from importlib.resources import files

from ems.text.segmenters.base import Need, Segmenter, cut_runs, package


def _full_perl() -> bool:
    if shutil.which("perl") is None:
        return False
    command = ["perl", "-MFindBin", "-MThread", "-MTime::HiRes", "-e1"]
    return subprocess.run(command, capture_output=True).returncode == 0


PERL = Need(_full_perl, "needs the full Perl; install Debian's package `perl`")


def _with_flags(*flags: str) -> Segmenter:
    def command(language: str) -> list[str]:
        script = files("mosestokenizer").joinpath("tokenizer-v1.1.perl")
        return ["perl", str(script), "-q", *flags, "-l", language]

    needs = (PERL, package("mosestokenizer"))
    return Segmenter(command=command, needs=needs, prepare=cut_runs, cuts_marks=True)


SEGMENTER = {
    "moses": _with_flags("-no-escape"),
    "moses-aggressive": _with_flags("-a", "-no-escape"),
    "moses-aggressive-escaped": _with_flags("-a"),  # the default of the package mosestokenizer
    "moses-escaped": _with_flags(),
}
