"""What notes and captions say of the papers and their tables.

Tables of EMS go by their numbers in v2; most stand in v1 too, under another.
"""

EMS_V1 = {  # table of EMS v2 -> its number in v1, where v1 has it
    **{"I": 1, "II": 2, "III": 3, "IV": 4, "V": 6, "VI": 5, "VIII": 7, "IX": 8, "X": 9},
    **{"XI": 10, "XII": 11, "XIII": 12, "XIV": 13},
}


def of_ems(*tables: str) -> str:
    """Return tables of the EMS paper under both of their numbers: "EMS v2, Table XI (v1: 10)"."""
    numbers = [f" (v1: {EMS_V1[name]})" if name in EMS_V1 else "" for name in tables]
    named = [f"Table {name}{number}" for name, number in zip(tables, numbers, strict=True)]
    return f"EMS v2, {', '.join(named)}"


ZERO_SHOT = (  # what the report says of a table of zero-shot classification
    "Classification across languages, zero-shot: a small network on frozen embeddings "
    "learns from one language and is tested in another; ``en-de`` is learnt in English "
    "and tested in German. Only the source language chooses its epoch. Accuracy in "
    "percent, the mean over the seeds; the line ``s.d.`` under each system is their "
    "standard deviation. ``Avg.`` is the mean over the directions shown, without English "
    "itself where all is learnt in English. Rows marked *printed* are the papers' (EMS "
    "v2, Tables XI to XIII; the monolingual paper, Tables 1 and 2). Bold marks the best "
    "of our systems."
)
