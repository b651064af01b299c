"""P@1 per direction: Lightweight Table 4, and the additional rows of its Table 10."""

from ems.bench.scores import Score, ScoreFile
from ems.tables.declarations import retrieval_table
from ems.tables.printed import load_europarl

ORDER = [f"en{arrow}{code}" for code in ("fr", "de", "es", "it") for arrow in ("->", "<-")]


def _arrow(file: ScoreFile, row: Score) -> str:
    return f"en->{row.target}" if row.source in file.english else f"en<-{row.source}"


def _both_arrows(labels: set[str]) -> list[str]:
    """Return the paper's columns first; then the others, both directions of a language together."""
    others = sorted(labels - set(ORDER), key=lambda name: (name[4:], name[2:4] == "<-"))
    return [*(name for name in ORDER if name in labels), *others]


TABLES = {
    "europarlxsr": retrieval_table(
        "europarlxsr",
        "v7",
        "absolute",
        load_europarl,
        _both_arrows,
        "P@1 in percent; en->fr has English queries and French candidates, en<-fr the reverse",
        _arrow,
    )
}
