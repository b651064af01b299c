"""What the PDF and the report say of tables and figures that belong to no benchmark: words.yaml."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import yaml

from ems.config.papers import of_ems
from ems.config.record import Shown


def _shown(ems_tables: Sequence[str] = (), **words: Any) -> Shown:
    return Shown(paper=of_ems(*ems_tables) if ems_tables else "", **words)


_WORDS = yaml.safe_load(files("ems.tables").joinpath("words.yaml").read_text(encoding="utf-8"))
TABLES, FIGURES, TIMED = (
    {name: _shown(**words) for name, words in outputs.items()} for outputs in _WORDS.values()
)
