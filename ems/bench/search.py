"""Cross-lingual similarity search by cosine, both directions: P@1 on Tatoeba (EMS v2 section V-A,
Tables IV to VI) and on the test part of NTREX.
"""

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ems.config import Experiment, stage_hash
from ems.config.provenance import digest
from ems.evalsets.sets import data_files, read_bitext
from ems.files import sha256_file, write_json
from ems.progress import Progress
from ems.retrieval import normalised, precision_at_1


class LineEncoder(Protocol):
    """Anything that turns lines of a language into vectors."""

    def encode(self, lines: list[str], language: str, what: str = ...) -> np.ndarray: ...


def evaluate(
    encoder: LineEncoder,
    experiment: Experiment,
    names: dict[str, str],
    folder: Path,
    out: Path,
) -> dict[str, Any]:
    """Score `encoder` on every language of a benchmark that its system has; write and return the
    JSON.

    `names`: the `system` and the `benchmark`. `to_english`: queries in the language, candidates in
    English; `from_english`: the other way round.
    """
    benchmark = names["benchmark"]
    evalset = experiment.evalsets[benchmark]
    spoken = experiment.of_system(names["system"]).spoken(benchmark)
    progress = Progress(f"{benchmark} {names['system']}", len(spoken), "languages")
    directions = {}
    for code, language in spoken.items():
        sides = read_bitext(experiment, benchmark, folder, code)
        directions[code] = _score(encoder, language, f"{benchmark} {code}", *sides)
        progress.add(1, f"{code} {directions[code]['to_english']:.1f}")
    mean = np.mean([(d["to_english"] + d["from_english"]) / 2 for d in directions.values()])
    progress.close(f"mean P@1 {mean:.1f}")
    files = data_files(experiment, benchmark, folder)
    part = f"{evalset.version}+{evalset.part}" if evalset.part else evalset.version
    result = {
        "benchmark": benchmark,
        "version": part,
        "metric": "P@1",
        "system": names["system"],
        "system_hash": stage_hash(experiment, "bench", **names),
        "data_sha256": digest({path.name: sha256_file(path) for path in files}),
        "directions": directions,
    }
    write_json(out, result)
    return result


def _score(
    encoder: LineEncoder, language: str, where: str, foreign: list[str], english: list[str]
) -> dict[str, Any]:
    first = normalised(encoder.encode(foreign, language, f"encode {where}"), where)
    second = normalised(encoder.encode(english, "en", f"encode {where}"), f"{where}, English")
    return {
        "language": language,
        "sentences": len(foreign),
        "to_english": precision_at_1(first, second),
        "from_english": precision_at_1(second, first),
    }
