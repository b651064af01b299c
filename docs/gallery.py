"""Write gallery.md and its pictures from a finished demo: `make docs`.

Without results/demo the committed page stays unchanged.
"""

from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from textwrap import fill

from ems.tables.compare import write_comparison

ROOT = Path(__file__).resolve().parents[1]
DEMO, PICTURES = ROOT / "results/demo", ROOT / "docs/gallery"
COMPARED = ("ems", "ems-no-xtr")  # systems of the demo
WIDTH = 150  # of a line of the page
START = """
These are the figures of the demo, which `make all` runs in about 8 minutes. Each is written as SVG,
PNG and PDF; the PDF is for LaTeX. Text stays text, so it can be searched and edited. In an SVG that
is opened by itself, the English name of a language appears over its code. Colours and marks suit
colour-blind eyes. The look is one file, `ems/tables/ems.mplstyle`, and
`matplotlib.style.use("ems.tables.ems")` draws your own figures the same way.
"""
FIGURES = {  # file in results/demo -> title, description
    "figures/tatoeba.svg": (
        "Languages and systems",
        "Tatoeba P@1 of each language, a mark per system, the best language on top. Further right "
        "is better.",
    ),
    "figures/flores.svg": (
        "Directions",
        "P@1 on FLORES-200 from each language (row) to each other language (column). Yellow is "
        "better. With more than 15 languages there are no numbers, and related languages stand "
        "together.",
    ),
    "figures/wmt24pp_length.svg": (
        "Scores and length",
        "P@1 on WMT24++ with English, by the number of words of the English segment.",
    ),
    "figures/pairs.svg": (
        "Scores and training data",
        "P@1 and the training pairs of each language. All languages of the demo have as many "
        "pairs, so each has a row, and further right is better. Otherwise each is a point over its "
        "number of pairs, and higher is better.",
    ),
    "figures/cleaning.svg": (
        "What became of the pairs",
        "The pairs of each corpus that cleaning kept, those it removed by reason, and the sides "
        "that repairs changed.",
    ),
    "figures/learning.svg": (
        "Learning curves",
        "P@1 of validation against the sentence pairs seen (higher is better), and each part of "
        "the loss (lower is better).",
    ),
    "figures/learning_languages.svg": (
        "Learning curves by language",
        "P@1 of validation against the sentence pairs seen, a panel per language. Higher is "
        "better; a line that still rises at its end would gain from a longer training.",
    ),
    "figures/ablation.svg": (
        "The effect of each change",
        "Mean P@1 of each system of the ablation, compared with the first one. Further right is "
        "better.",
    ),
    "costs/summary/tradeoff.svg": (
        "Quality and cost",
        "Mean P@1 against the minutes of training on the machine of the run. Higher and further "
        "left is better.",
    ),
    "compare.svg": (
        "Two systems on all benchmarks",
        f"The figure of `ems compare`: {COMPARED[1]} minus {COMPARED[0]}, by language or "
        "direction. Blue is better, also where less is better.",
    ),
}


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    parts = ["# Gallery: every kind of figure", fill(START.strip(), WIDTH)]
    for file, (title, caption) in FIGURES.items():
        picture = PICTURES / Path(file).name
        if "/" in file:
            copyfile(DEMO / file, picture)
        parts += [f"## {title}", fill(caption, WIDTH), f"![{title}](gallery/{picture.name})"]
    with TemporaryDirectory() as folder:
        written = Path(folder) / "compare.svg"
        write_comparison(*(DEMO / "scores" / name for name in COMPARED), written)
        copyfile(written, PICTURES / written.name)
    (ROOT / "docs/gallery.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if all((DEMO / file).exists() for file in FIGURES if "/" in file):
        main()
    else:
        print("docs/gallery.md is unchanged, since results/demo is not finished (see `make all`)")
