"""ParaCrawl v5 for retrieval: find 2,000 sentences of English among 200,000 of a language.

Moses zips of OPUS, `moses/<a>-<b>.txt.zip`, which lie among the corpora. Source: Bañón et al.,
"ParaCrawl" (ACL 2020), https://opus.nlpl.eu/ParaCrawl-v5.php. EMS v2 section V-D (Table X, 21
languages).

Which pairs are queries and which candidates, the benchmark draws; here they are only read, one by
one. For that reason, and since a language has up to 51 million pairs, `decontaminate.against` does
not take this set. The EMS paper trains on none of it.
"""

from collections.abc import Iterator
from pathlib import Path

from ems.config import pair_name
from ems.corpora.moses import count_pairs, read_pairs
from ems.evalsets.ntrex import file_names

CORPUS = "ParaCrawl"


def count(folder: Path, code: str) -> int:
    """The number of pairs of one language with English."""
    return count_pairs(folder / file_names(code)[0], CORPUS, pair_name("en", code))


def read_language(folder: Path, code: str) -> Iterator[tuple[str, str]]:
    """(sentence, English sentence) of one language, one by one."""
    pair = pair_name("en", code)
    for first, second in read_pairs(folder / file_names(code)[0], CORPUS, pair):
        yield (first, second) if pair.startswith(f"{code}-") else (second, first)
