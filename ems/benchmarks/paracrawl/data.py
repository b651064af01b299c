"""ParaCrawl v5 and Europarl for retrieval: Moses zips of OPUS in the folder of the corpora.

Queries and candidates are drawn from up to 51 million pairs per language, so
`decontaminate.against` does not accept these sets. Never train on the corpus you retrieve from: the
EMS paper trains on Europarl and retrieves from ParaCrawl, the Lightweight paper the reverse.
Sources: Bañón et al. (ACL 2020), Koehn (MT Summit 2005).
"""

from collections.abc import Iterator
from pathlib import Path

from ems.benchmarks.ntrex.data import file_names
from ems.config.languages import pair_name
from ems.corpora.moses import count_pairs, read_pairs

__all__ = ["count", "file_names", "read_language"]


def count(folder: Path, code: str, corpus: str) -> int:
    return count_pairs(folder / file_names(code)[0], corpus, pair_name("en", code))


def read_language(folder: Path, code: str, corpus: str) -> Iterator[tuple[str, str]]:
    """Yield (sentence, English sentence)."""
    pair = pair_name("en", code)
    for first, second in read_pairs(folder / file_names(code)[0], corpus, pair):
        yield (first, second) if pair.startswith(f"{code}-") else (second, first)
