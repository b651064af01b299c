"""Copy the clean text of an experiment as corpora of OPUS, with a share of its pairs damaged.

    python perf/noisy_text.py --text results/small62/text/clean --corpora Tatoeba+train NTREX+train
        --out ../noisy [--rate 0.2]

Half of the damaged pairs get one of the damages of lines (tests/made/noise.py) on one side, half
one of those of pairs (tests/made/pair_noise.py). The corpora can be sources of experiments with and
without `clean.repairs` and `clean.filters`: do these help a model? docs/log.md has the answer.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from text_steps import ROOT

from ems.base.texts import read_lines
from ems.corpora.identifier import letters_of

sys.path.append(str(ROOT / "tests"))
from made.corpora import moses_of
from made.noise import KINDS
from made.pair_noise import REASONS
from made.pair_noise import damaged as damaged_pair

Rows = list[tuple[str, ...]]
EARLIER = 50  # pairs that noise of pairs may repeat


def texts_of(folder: Path, corpora: list[str]) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Yield (corpus, languages, pairs) of each file <corpus>/<version>/<pair>.tsv."""
    for corpus in corpora:
        for path in sorted(folder.glob(f"{corpus}/*/*-*.tsv")):
            rows = [tuple(line.split("\t")[:2]) for line in read_lines(path)]
            yield corpus, tuple(path.stem.split("-")), rows


def damaged_line(pair: tuple[str, ...], codes: tuple[str, ...], draw: Random) -> tuple[str, ...]:
    """Return the pair with one side damaged in the first of the ways, shuffled, that fits it."""
    side = draw.randrange(2)
    for kind in draw.sample([*KINDS], len(KINDS)):
        new = KINDS[kind][1](pair[side], codes[side], draw) or pair[side]
        if new != pair[side] and not {*new} & {*"\t\n"}:
            return (new, pair[1]) if side == 0 else (pair[0], new)
    return pair


def noisy(
    rows: Rows, codes: tuple[str, ...], rate: float, foreign: list[tuple[str, str]]
) -> tuple[Rows, Counter[str]]:
    """Damage a share of the pairs; count the kinds. `foreign`: (language, sentence)."""
    draw, result, kinds = Random(f"{codes}"), [], Counter()
    own, others = letters_of(codes[0]), [text for code, text in foreign if code not in codes]
    scripts = [text for text in others if own and not own.search(text)]
    for at, pair in enumerate(rows):
        new = pair
        if draw.random() < rate:
            kind = draw.choice([*REASONS]) if at > EARLIER and draw.random() < 0.5 else ""
            earlier, elsewhere = rows[at - EARLIER : at], {"script": scripts, "language": others}
            made = kind and damaged_pair(kind, pair, draw, earlier, elsewhere)
            new = made or damaged_line(pair, codes, draw)
            kinds[kind if made else "line"] += 1
        result.append(new)
    return result, kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", type=Path, required=True, help="clean text of an experiment")
    parser.add_argument("--corpora", nargs="+", required=True, help="its folders to copy")
    parser.add_argument("--rate", type=float, default=0.2, help="share of the pairs")
    parser.add_argument("--out", type=Path, required=True, help="folder of OPUS to write")
    options = parser.parse_args()
    texts, draw, total = [*texts_of(options.text, options.corpora)], Random(0), Counter()
    foreign = [
        (codes[side], draw.choice(rows)[side])
        for _, codes, rows in texts
        for side in (0, 1)
        for _ in range(20)
    ]
    for corpus, codes, rows in texts:
        result, kinds = noisy(rows, codes, options.rate, foreign)
        name, pair = f"noisy-{corpus.partition('+')[0]}", "-".join(codes)
        moses_of(
            options.out / name / "v1/moses" / f"{pair}.txt.zip", result, corpus=name, pair=pair
        )
        total += kinds + Counter(pairs=len(rows))
    print(" ".join(f"{kind.replace(' ', '_')}={count}" for kind, count in total.items()))


if __name__ == "__main__":
    main()
