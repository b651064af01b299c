"""Which table of the papers each of ours is made after, for notes and captions.

Tables of EMS go by their numbers in v2; most stand in v1 too, under another.
"""

EMS_V1 = {  # table of EMS v2 -> its number in v1, where v1 has it
    **{"I": 1, "II": 2, "III": 3, "IV": 4, "V": 6, "VI": 5, "VIII": 7, "IX": 8, "X": 9},
    **{"XI": 10, "XII": 11, "XIII": 12, "XIV": 13},
}


def of_ems(*tables: str) -> str:
    """Tables of the EMS paper under both of their numbers: "EMS v2, Table XI (v1: 10)"."""
    numbers = [f" (v1: {EMS_V1[name]})" if name in EMS_V1 else "" for name in tables]
    named = [f"Table {name}{number}" for name, number in zip(tables, numbers, strict=True)]
    return f"EMS v2, {', '.join(named)}"


PRINTED_IN = {  # table of ours -> the papers' of the same form
    "corpora": of_ems("I"),
    "sweep": of_ems("II"),
    "models": of_ems("III"),
    "ablation": of_ems("XIV"),
}
