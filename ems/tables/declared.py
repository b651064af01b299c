"""The tables of systems x columns, each a declaration for the engine."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations

from ems.scores import Score, ScoreFile
from ems.shapes import TEXT
from ems.tables.accuracy import accuracy_table
from ems.tables.columns import (
    BEST,
    BOTH_WAYS,
    counted,
    direction,
    groups_beside,
    labels_of,
    language_direction,
    one_each,
)
from ems.tables.engine import Column, Declaration, Models, Printed, Row, headings
from ems.tables.papers import PRINTED_IN, of_ems
from ems.tables.printed import (
    AVERAGE,
    in_given_order,
    in_paper_order,
    in_table_one_order,
    load_europarl,
    load_flores,
    load_flores_groups,
    load_groups,
    load_models,
    load_similarities,
    load_table,
)
from ems.tables.scores import Scores
from ems.tables.table import PRINTED, Block, balanced_blocks

# --- Tatoeba and NTREX


def _tatoeba_models() -> Models:
    """The printed values of Tables IV to VI, each mean under the name of its table or group."""
    return {
        name: {
            **model.values,
            **({"IV": model.seen_average, "VI": model.unseen_average} if model.seen else {}),
            **model.groups,
        }
        for name, model in load_models().items()
    }


def _tatoeba_columns(systems: Sequence[Scores], groups: bool) -> list[Column]:
    """A column for each language, their mean, and those of the groups of Table V."""
    languages = in_paper_order(labels_of(systems))
    ems = load_models()["EMS"]
    tables = {"IV": set(ems.seen), "VI": set(ems.unseen)}
    whole = next((name for name, codes in tables.items() if codes == set(languages)), "")
    columns = [Column(code, [code], code) for code in languages]
    columns.append(Column(AVERAGE, languages, whole, part=not whole))
    for group in load_groups() if groups else ():
        members = [code for code in group.languages if code in languages]
        part = len(members) < len(group.languages)
        heading = f"{group.name} {len(members)}/{len(group.languages)}" if part else group.heading
        columns.append(Column(heading, members, group.heading, part))
    return columns


def _tatoeba_blocks(columns: list[Column]) -> list[Block]:
    return groups_beside(columns, headings(columns).index(AVERAGE) + 1)


def _tatoeba_notes(columns: list[Column], beside: list[Row]) -> list[str]:
    """What is not certain, or not printed, of the printed rows, and who was trained on what."""
    languages = [column.heading for column in columns if column.members == [column.heading]]
    known = load_models()
    models = [known[row.label.removesuffix(PRINTED)] for row in beside]
    trained = [m.name for m in models if m.name in TRAINED and set(languages) & set(m.unseen)]
    notes = []
    if trained:
        names = ", ".join(trained)
        notes.append(f"Trained on several languages of Table VI, says the paper: {names}.")
    for model in models:
        unsettled = [code for code in languages if code in model.unsettled]
        absent = [code for code in languages if code not in model.values and model.seen]
        if unsettled:
            codes = ", ".join(unsettled)
            notes.append(f"{model.name} (printed): the paper's text has two readings for {codes}.")
        if absent:
            codes = ", ".join(absent)
            notes.append(f"{model.name} (printed): the paper prints no value for {codes}.")
    return notes


TRAINED = ("LASER", "LaBSE")  # on "several" languages of Table VI, says its caption


def _tatoeba(seen: bool, tables: tuple[str, ...], about: list[str]) -> Declaration:
    return Declaration(
        benchmarks={"tatoeba": ""},
        metric="P@1",
        columns=partial(_tatoeba_columns, groups=seen),
        blocks=_tatoeba_blocks,
        seen=seen,
        about=lambda systems: [f"Tatoeba {systems[0].version}: {about[0]}", *about[1:]],
        printed=Printed(of_ems(*tables), _tatoeba_models, "Tatoeba v1", version="v1"),
        more_notes=_tatoeba_notes,
    )


NTREX = Declaration(
    benchmarks={"ntrex": ""},
    metric="P@1",
    columns=partial(one_each, order=in_table_one_order),
    about=lambda systems: [
        f"NTREX {systems[0].version}: {BOTH_WAYS}, among {counted(systems)} sentences of each "
        "language: those in the documents of NTREX that neither training nor validation holds. "
        f"{BEST}"
    ],
)

# --- FLORES-200


def _flores_columns(systems: Sequence[Scores]) -> list[Column]:
    """The groups and pairs of Table VII, then all directions."""
    have = dict.fromkeys(name for system in systems for name in system.values)
    groups = load_flores_groups()
    columns = []
    for printed in next(iter(load_flores().values())):
        languages = groups.get(printed) or printed.split("-")
        every = [direction(*pair) for pair in permutations(languages, 2)]
        ours = [name for name in every if name in have]
        part = printed in groups and len(ours) < len(every)
        heading = f"{printed.partition(' ')[0]} {len(ours)}/{len(every)}" if part else printed
        columns.append(Column(heading, ours, printed, part))
    return [*columns, Column(f"All ({len(have):,})", list(have))]


FLORES = Declaration(
    benchmarks={"flores200": ""},
    metric="P@1",
    label=language_direction,
    columns=_flores_columns,
    blocks=lambda columns: [Block(headings(columns))],
    about=lambda systems: [
        f"FLORES-200 {systems[0].version}, devtest: P@1 in percent by cosine among "
        f"{counted(systems)} sentences of each language. mUSE and <300k: mean over the directions "
        "between the languages of the group; n/m are n of the paper's m directions. A pair: mean "
        f"of its two directions. All: every direction scored, English included. {BEST}"
    ],
    printed=Printed(
        PRINTED_IN["flores"],
        load_flores,
        "FLORES-200 v1 with 1,012 sentences",
        version="v1",
        count=1012,
        whole=True,
        dagger="as printed, over all directions of the group",
    ),
)

KINDS_NOTE = " Kinds of errors of xsim++ in percent of the sentences, mean over languages."


def _xsim_columns(systems: Sequence[Scores]) -> list[Column]:
    """The languages, their mean, and each kind of error that occurs."""
    measures = [item for system in systems for item in system.measures.items()]
    kinds = sorted({kind for kind, values in measures if any(values.values())})
    languages = one_each(systems, in_table_one_order)
    return [*languages, *(Column(kind.replace("_", " "), [kind], measure=kind) for kind in kinds)]


def _xsim_blocks(columns: list[Column]) -> list[Block]:
    kinds = [column.heading for column in columns if column.measure]
    languages = [column.heading for column in columns if not column.measure]
    return [*balanced_blocks(languages), *([Block(kinds, True, "xsim++: ")] if kinds else [])]


def _xsim_about(systems: Sequence[Scores]) -> list[str]:
    protocol = systems[0].file.setting
    kinds = KINDS_NOTE if any(system.measures for system in systems) else ""
    return [
        f"FLORES-200 {systems[0].version}, devtest, {protocol('margin', TEXT)} margin, k = "
        f"{protocol('k')}: sentences in percent whose English translation is not the best "
        f"candidate. xsim++ has made sentences among the candidates.{kinds} Bold: lowest of our "
        "systems."
    ]


XSIM = Declaration(
    benchmarks={"xsim": "xsim: ", "xsimpp": "xsim++: "},
    metric="error rate",
    label=lambda file, row: file.languages[row.source],
    columns=_xsim_columns,
    blocks=_xsim_blocks,
    about=_xsim_about,
)
WORDORDER = Declaration(
    benchmarks={"wordorder": ""},
    metric="cosine",
    label=lambda file, row: "Cosine",
    columns=lambda systems: [Column("Cosine", ["Cosine"], "Cosine")],
    decimals=2,
    about=lambda systems: [
        "Cosine of the two sentences of EMS v2 section V-H, which differ in the order of their "
        "words and in what they mean: the lower the better."
    ],
    printed=Printed(
        PRINTED_IN["wordorder"],
        lambda: {name: {"Cosine": value} for name, value in load_similarities().items()},
        paper_order=True,
    ),
)

# --- mining and retrieval among many

BUCC_THRESHOLDS = {
    "oracle": "The threshold of each pair is the one with the best F1 on these same gold pairs "
    "(oracle), as in the script that the paper used (sentence-transformers, bucc2018.py).",
    "sample": "The threshold of each pair is the one with the best F1 on its sample part; gold "
    "pairs of the part that is scored were not used.",
}
BUCC_ORDER = [f"en-{code}" for code in ("de", "fr", "ru", "zh")]


def _bucc_models() -> Models:
    return load_table("ems-v2-table09-bucc", "model", "pair")


def bucc_about(systems: Sequence[Scores]) -> list[str]:
    """What the numbers of BUCC are, and how the threshold was chosen."""
    protocol = systems[0].file.setting
    return [
        f"BUCC {systems[0].version}, training part: F1 in percent of pairs mined with "
        f"{protocol('margin', TEXT)} margin, {protocol('k')} neighbours, exact search from both "
        f"sides, each sentence in one pair. {BEST}",
        BUCC_THRESHOLDS[protocol("threshold", {"enum": list(BUCC_THRESHOLDS)})],
    ]


BUCC = Declaration(
    benchmarks={"bucc2018": ""},
    metric="F1",
    label=lambda file, row: f"en-{row.source}",
    columns=lambda systems: one_each(
        systems, partial(in_given_order, first=BUCC_ORDER), _bucc_models()
    ),
    blocks=lambda columns: [Block(headings(columns))],
    about=bucc_about,
    printed=Printed(
        PRINTED_IN["bucc2018"],
        _bucc_models,
        "BUCC v2018, ratio margin, 4 neighbours, threshold chosen on the gold pairs that are "
        "scored",
        version="v2018",
        protocol={"k": 4, "margin": "ratio", "threshold": "oracle"},
    ),
)

MARGINS = {
    "ratio": "the ratio margin with {k} neighbours",
    "distance": "the distance margin with {k} neighbours",
    "absolute": "cosine",
}
EUROPARL_ORDER = [f"en{arrow}{code}" for code in ("fr", "de", "es", "it") for arrow in ("->", "<-")]


def _arrow(file: ScoreFile, row: Score) -> str:
    """en->fr has English queries and French candidates."""
    english = row.source in file.english
    return f"en->{row.target}" if english else f"en<-{row.source}"


def _both_arrows(labels: set[str]) -> list[str]:
    """The paper's columns, then the others, both directions of a language side by side."""
    others = sorted(labels - set(EUROPARL_ORDER), key=lambda name: (name[4:], name[2:4] == "<-"))
    return [*(name for name in EUROPARL_ORDER if name in labels), *others]


def _retrieval(
    benchmark: str,
    title: str,
    version: str,
    margin: str,
    models: Callable[[], Models],
    columns: Callable[[Sequence[Scores]], list[Column]],
    what: str,
    label: Callable[[ScoreFile, Score], str] = ScoreFile.label_of,
) -> Declaration:
    def about(systems: Sequence[Scores]) -> list[str]:
        protocol = systems[0].file.setting
        measure = MARGINS[protocol("margin", {"enum": list(MARGINS)})].format(k=protocol("k"))
        return [
            f"{title} {systems[0].version}: {what}, of {protocol('queries'):,} queries among "
            f"{protocol('candidates'):,} candidates, by {measure}. {BEST}"
        ]

    return Declaration(
        benchmarks={benchmark: ""},
        metric="P@1",
        label=label,
        columns=columns,
        about=about,
        printed=Printed(
            f"{PRINTED_IN[benchmark]}, of other sentences drawn from {title}",
            models,
            f"{title} {version}, 2,000 queries among 200,000, by {MARGINS[margin].format(k=4)}",
            version=version,
            protocol={"queries": 2000, "candidates": 200_000, "margin": margin},
        ),
    )


def _paracrawl_models() -> Models:
    return load_table("ems-v2-table10-paracrawl", "model", "language")


PARACRAWL = _retrieval(
    "paracrawl",
    "ParaCrawl",
    "v5",
    "ratio",
    _paracrawl_models,
    lambda systems: one_each(systems, in_table_one_order, _paracrawl_models()),
    BOTH_WAYS,
)
EUROPARL = _retrieval(
    "europarlxsr",
    "Europarl",
    "v7",
    "absolute",
    load_europarl,
    lambda systems: one_each(systems, _both_arrows, load_europarl()),
    "P@1 in percent; in en->fr queries are English, candidates French, in en<-fr the reverse",
    _arrow,
)

FROM_ENGLISH = "learnt in English; Avg. without English"
DECLARED: dict[str, Declaration] = {
    "tatoeba": _tatoeba(
        True,
        ("IV", "V"),
        [
            f"{BOTH_WAYS}, for each language, then the mean over all languages, then over the "
            f"groups of EMS v2 Table V. {BEST}",
            "A group n/m has n of the m languages that the paper's mean is over; English is "
            "counted in the paper's numbers, but has no score of its own.",
        ],
    ),
    "tatoeba_unseen": _tatoeba(
        False,
        ("VI",),
        [
            f"{BOTH_WAYS}, for each language that our systems were not trained on, then the mean "
            f"over all of these languages. {BEST}"
        ],
    ),
    "ntrex": NTREX,
    "flores": FLORES,
    "xsim": XSIM,
    "wordorder": WORDORDER,
    "bucc2018": BUCC,
    "paracrawl": PARACRAWL,
    "europarlxsr": EUROPARL,
    "mldoc": accuracy_table("mldoc", "MLDoc, zero-shot: the topic of a news item"),
    "mldoc_bilingual": accuracy_table(
        "mldoc_bilingual", "MLDoc, zero-shot, models of one pair each", "mldoc", every=True
    ),
    "cls": accuracy_table("cls", "Amazon reviews version 1 (CLS), zero-shot"),
    "marc": accuracy_table("marc", "Amazon reviews version 2 (MARC), zero-shot"),
    "rcv2": accuracy_table("rcv2", "RCV2 headlines, zero-shot", every=True),
    "xnli": accuracy_table("xnli", f"XNLI, {FROM_ENGLISH}", every=True),
    "sib200": accuracy_table("sib200", f"SIB-200, seven topics, {FROM_ENGLISH}"),
    "counterfactual": accuracy_table(
        "counterfactual", f"Amazon counterfactual sentences, {FROM_ENGLISH}"
    ),
    "pawsx": accuracy_table(
        "pawsx", "PAWS-X, cosine with the threshold of English dev; Avg. without English"
    ),
}
