"""The evaluation sets by name: which files a language has, and what its sentences are."""

from collections.abc import Callable
from pathlib import Path

import ems.evalsets.flores200 as flores200  # one by one: the fetchers beside them
import ems.evalsets.ntrex as ntrex  # must not be part of the source that a stage depends on
import ems.evalsets.sib200 as sib200
import ems.evalsets.tatoeba as tatoeba
from ems.config import Experiment
from ems.config.experiment import NTREX

FILES: dict[str, Callable[[str], tuple[str, ...]]] = {
    "tatoeba": tatoeba.file_names,
    "flores200": flores200.file_names,
    "sib200": sib200.file_names,
    "ntrex": ntrex.file_names,
}


def read_bitext(experiment: Experiment, name: str, folder: Path, code: str) -> list[list[str]]:
    """[sentences, English sentences] of one language of a set of translations, line by line."""
    if name == "tatoeba":
        return list(tatoeba.read_language(folder, code))
    evalset = experiment.evalsets[name]
    split = experiment.splits[NTREX] if evalset.part else None
    return ntrex.read_language(folder, code, split, evalset.part)


def read_sides(experiment: Experiment, name: str, folder: Path, code: str) -> list[list[str]]:
    """All sentences of one language of a set: both sides of translations, else one side."""
    if name == "flores200":
        return [flores200.read_language(folder, code)]
    if name == "sib200":
        return [sib200.read_language(folder, code)]
    return read_bitext(experiment, name, folder, code)


def data_files(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """Every file that the scores of a benchmark depend on."""
    evalset = experiment.evalsets[name]
    paths = [folder / path for code in evalset.languages for path in FILES[name](code)]
    documents = [folder / experiment.splits[NTREX].documents] if evalset.part else []
    return [*paths, *documents]
