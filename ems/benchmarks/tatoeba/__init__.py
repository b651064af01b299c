"""Tatoeba: the translation of a sentence among up to 1,000, in 112 languages."""

from typing import TYPE_CHECKING

from ems.config.plugins import Benchmark, Shown, of_ems

if TYPE_CHECKING:
    from ems.config.experiment import Experiment


def _of_unseen(experiment: "Experiment") -> list[str]:
    """Return the systems that are scored on languages that they were not trained on."""
    known = "tatoeba" in experiment.evalsets
    names = experiment.shown if known else []
    return [name for name in names if experiment.scores_unseen("tatoeba", name)]


BENCHMARK = Benchmark(
    title="Tatoeba",
    licence="CC BY 2.0 FR",
    source="'embedded', a directory, or a URL",
    published="https://raw.githubusercontent.com/facebookresearch/LASER/74bc6ae7ffb7/data/tatoeba/v1",
    codes="tatoeba_v1",
    unseen=True,
    by_language=True,
    family="retrieval",
    joins={"ablation": 1, "pairs": 1, "tradeoff": 1},
    tables={
        "tatoeba": Shown(
            place=50,
            caption="P@1 per language.",
            paper=of_ems("IV", "V"),
            report="Tatoeba similarity search (EMS v2, section V-A, Tables IV and V). For each "
            "language, the share of sentences whose nearest neighbour by cosine on the other side "
            "is their translation (P@1, in percent), as the mean of both directions; ``Avg.`` is "
            "the mean over all languages shown. Below them are the means over the paper's six "
            "groups of languages; ``mUSE 5/14`` says that 5 of the 14 languages which the paper "
            "averages are there. Bold marks the best of our systems.",
        ),
        "tatoeba_unseen": Shown(
            among=_of_unseen,
            place=60,
            caption="Tatoeba: P@1 of languages that were not trained on.",
            paper=of_ems("VI"),
            report="Tatoeba similarity search in languages that the encoders were never trained "
            "on (EMS v2, section V-A, Table VI), measured as for those trained on: P@1 in "
            "percent, the mean of both directions; ``Avg.`` is the mean over all languages shown. "
            "Bold marks the best of our systems. Among the printed models, LASER and LaBSE were "
            "trained on several of these languages.",
        ),
    },
    figures={
        "tatoeba": Shown(
            caption="P@1 per language",
            report="Tatoeba P@1 in percent per language, the mean of both directions, one colour "
            "per system (EMS v2, section V-A, Table IV). The languages stand in the order of the "
            "paper; a language that a system was not scored on has no bar. The numbers are those "
            "of the Tatoeba table.",
        ),
    },
)
