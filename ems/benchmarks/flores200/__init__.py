"""FLORES-200: the translation of a sentence among 1,012, between any two languages."""

from ems.config.benchmarks import SearchProtocol
from ems.config.plugins import Benchmark, Shown, of_ems

BENCHMARK = Benchmark(
    title="FLORES-200",
    licence="CC BY-SA 4.0",
    source="a directory or a URL with devtest/deu_Latn.devtest, or the URL of "
    "flores200_dataset.tar.gz",
    published="https://raw.githubusercontent.com/Helsinki-NLP/OPUS-MT-testsets/ac0f19c0be3cb4e0d9450fcb2d7a9847c4bdd180/datasets/facebook/flores/flores200_dataset",
    codes="flores200",
    by_language=True,
    dev="https://dl.fbaipublicfiles.com/nllb/flores200_dataset.tar.gz",
    between="",
    parallel=True,
    joins={"ablation": 2},
    protocol=SearchProtocol,
    tables={
        "flores": Shown(
            place=70,
            caption="P@1 between all languages.",
            paper=of_ems("VII"),
            report="Similarity search between languages on FLORES-200 (EMS v2, section V-B, Table "
            "VII): P@1 in percent by cosine, as the mean over the directions of two groups of "
            "languages, for eight pairs (the mean of both directions), and over every direction "
            "scored. Bold marks the best of our systems.",
        ),
    },
    figures={
        "flores": Shown(
            caption="P@1 between all languages",
            report="P@1 in percent on FLORES-200 from each language (row) to each other one "
            "(column), by cosine (EMS v2, section V-B).",
        ),
    },
)
