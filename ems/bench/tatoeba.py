"""Tatoeba cross-lingual similarity: P@1 by cosine, both directions (EMS v2 section V-A, Tables IV
to VI).
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ems.config import Experiment, stage_hash
from ems.config.provenance import digest
from ems.evalsets.tatoeba import file_names, read_language
from ems.files import sha256_file, write_json
from ems.progress import Progress
from ems.retrieval import normalised, precision_at_1


class LineEncoder(Protocol):
    """Anything that turns lines of a language into vectors."""

    def encode(self, lines: list[str], language: str, what: str = ...) -> np.ndarray: ...


def evaluate(
    encoder: LineEncoder, experiment: Experiment, system: str, folder: Path, out: Path
) -> dict[str, Any]:
    """Score `encoder` on every language of the experiment's Tatoeba set; write and return the JSON.

    `to_english`: queries in the language, candidates in English; `from_english`: the other way
    round.
    """
    evalset = experiment.evalsets["tatoeba"]
    codes = {code: experiment.languages[code].tatoeba_v1 for code in evalset["languages"]}
    progress = Progress(f"tatoeba {system}", len(codes), "languages")
    directions = {}
    for language, code in codes.items():
        directions[code] = _score(encoder, language, *read_language(folder, code))
        progress.add(1, f"{language} {directions[code]['to_english']:.1f}")
    mean = np.mean([(d["to_english"] + d["from_english"]) / 2 for d in directions.values()])
    progress.close(f"mean P@1 {mean:.1f}")
    files = [folder / name for code in codes.values() for name in file_names(code)]
    result = {
        "benchmark": "tatoeba",
        "version": evalset["version"],
        "metric": "P@1",
        "system": system,
        "system_hash": stage_hash(experiment, "bench", system=system, benchmark="tatoeba"),
        "data_sha256": digest({path.name: sha256_file(path) for path in files}),
        "directions": directions,
    }
    write_json(out, result)
    return result


def _score(
    encoder: LineEncoder, language: str, foreign: list[str], english: list[str]
) -> dict[str, Any]:
    first = normalised(encoder.encode(foreign, language), f"tatoeba {language}")
    second = normalised(encoder.encode(english, "en", f"encode {language} side"), "tatoeba en")
    return {
        "language": language,
        "sentences": len(foreign),
        "to_english": precision_at_1(first, second),
        "from_english": precision_at_1(second, first),
    }
