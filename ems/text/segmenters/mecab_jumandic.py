"""The program MeCab with the dictionary of Juman, for Japanese."""

from pathlib import Path

from ems.text.segmenters.base import Need, Segmenter, cut_runs, full_width_kana, program

JUMANDIC = Path("/var/lib/mecab/dic/juman-utf8")  # where Debian's package puts it
BUFFER = 1 << 20  # bytes; MeCab splits longer lines

SEGMENTER = Segmenter(
    command=lambda language: ["mecab", "-Owakati", "-d", str(JUMANDIC), "-b", str(BUFFER)],
    needs=(
        program("mecab", "needs Debian's packages `mecab` and `mecab-jumandic-utf8`"),
        Need(JUMANDIC.is_dir, "needs Debian's package `mecab-jumandic-utf8`"),
    ),
    prepare=lambda line: full_width_kana(cut_runs(line)),
    limit=1_000_000,
)
