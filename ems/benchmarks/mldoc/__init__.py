"""MLDoc: the topic of a news item."""

from typing import TYPE_CHECKING

from pydantic import Field

from ems.benchmarks.mldoc.languages import LANGUAGES
from ems.config.benchmarks import Examples, ProbeSettings
from ems.config.plugins import ZERO_SHOT, Benchmark, Shown, of_ems

if TYPE_CHECKING:
    from ems.config.experiment import Experiment


def _of_one_pair(experiment: "Experiment") -> list[str]:
    """Return the systems that are models of one language pair each."""
    members = {name for names in experiment.families.values() for name in names}
    return [name for name in experiment.shown if name in members]


class Probe(ProbeSettings):
    """The classifier of MLDoc."""

    title: bool = Field(False, description="Puts the headline or title before the text.")
    train: Examples = Field(
        1000, description="The examples to train on: those of mldoc-indices/german.train.1000."
    )


BENCHMARK = Benchmark(
    title="MLDoc",
    status="closed",
    licence="indices CC BY-NC 4.0; text Reuters, by agreement with NIST",
    obtain="ask NIST for RCV1 and RCV2 (https://trec.nist.gov/data/reuters/reuters.html) and put "
    "mldoc-indices/ of https://github.com/facebookresearch/MLDoc beside rcv1/ and "
    "RCV2_Multilingual_Corpus/",
    codes=LANGUAGES,
    demo="reuters",
    family="classification",
    joins={"ablation": 3},
    probe=Probe,
    tables={
        "mldoc": Shown(
            place=120,
            caption="MLDoc, zero-shot: accuracy, mean and standard deviation of the seeds.",
            paper=of_ems("XI"),
            report=ZERO_SHOT,
            heading="MLDoc, zero-shot: the topic of a news item",
            printed="ems-v2-table11-mldoc",
        ),
        "mldoc_bilingual": Shown(
            among=_of_one_pair,
            place=130,
            caption="MLDoc, zero-shot, a model for each pair: accuracy, mean and standard "
            "deviation of the seeds.",
            paper="Lightweight, Tables 3 and 10",
            heading="MLDoc, zero-shot, models of one pair each",
            printed="lightweight-table03-mldoc",
            every=True,
            report="Classification of news across languages, zero-shot, by models of one pair "
            "each (the Lightweight paper, section 4.3, Table 3): as the table of MLDoc, in the "
            "paper's eight directions. Rows marked *printed* are the paper's, those of its Table "
            "10 among them. Bold marks the best of our systems.",
        ),
    },
)
