"""What the PDF and the report say of tables and figures that belong to no benchmark."""

from ems.benchmarks.record import Shown
from ems.papers import of_ems

TABLES = {
    "corpora": Shown(
        caption="Sentence pairs per language.",
        place=0,
        paper=of_ems("I"),
        report=(
            "Training data by language, in sentence pairs with English (EMS v2, section IV-A, "
            "Table I): how many were read, how many went because a sentence of theirs is in an "
            "evaluation set, how many went for other reasons (empty, over a corpus's limit), how "
            "many are left. The columns marked *printed* are the paper's counts for LASER and "
            "EMS. Validation pairs are counted in a row of their own."
        ),
    ),
    "decontamination": Shown(
        caption="Evaluation sentences found in the corpora and removed.",
        place=10,
        report=(
            "What the removal of evaluation sentences found (EMS v2, section IV-B): per corpus "
            "and benchmark, how many sentences of each side are in the benchmark, and in how many "
            "pairs they occur. A pair goes when either side is found. A pair that is in several "
            'benchmarks counts in each of their rows, and once in "any of them".'
        ),
    ),
    "filters": Shown(
        caption="Sentence pairs removed, by reason.",
        place=20,
        report=(
            "Why sentence pairs were removed, corpus by corpus: what was read is what was kept "
            "plus all removals. A pair counts once, under the first reason from the left that it "
            "has. A dash means that the filter was off."
        ),
    ),
    "vocabulary": Shown(
        caption="The subword vocabulary by language and by script.",
        place=30,
        report=(
            "The subword vocabulary, on lines that it was trained on: for each language the share "
            "of unknown tokens, tokens per character (without spaces) and per line; below, how "
            "many of its pieces each script has."
        ),
    ),
    "models": Shown(
        caption="The models: data and size.",
        place=40,
        paper=of_ems("III"),
        report=(
            "The models (EMS v2, Table III): languages, sentence pairs after cleaning and "
            "decontamination, architecture and parameters, as the paper counts them (without the "
            "input embedding) and as they are used after training."
        ),
    ),
    "ablation": Shown(
        caption="What each change is worth",
        place=180,
        paper=of_ems("XIV"),
        report=(
            "What each component is worth (EMS v2, section V-G, Table XIV): mean P@1 on Tatoeba "
            "and FLORES-200 and mean zero-shot accuracy on MLDoc, as far as the experiment has "
            "these benchmarks. Bold marks the best of our systems."
        ),
    ),
    "sweep": Shown(
        caption="A search around one system.",
        place=10000,
        paper=of_ems("II"),
        report=(
            "A search around one system, a single setting changed at a time (EMS v2, section "
            "IV-C, Table II): the loss of the last validation, its parts, and P@1 in percent as "
            "the mean over language pairs and directions. The point around which it goes stands "
            "in each group of rows. Bold marks the best value of each setting; a setting of the "
            "loss itself changes what the loss measures, so there only P@1 is compared. A dagger "
            "marks what the paper chose."
        ),
    ),
}
FIGURES = {
    "pairs": Shown(
        caption="P@1 against training pairs",
        report=(
            "Tatoeba P@1 in percent (the mean of both directions) of each language that was "
            "trained on, against its sentence pairs for training as they are after "
            "decontamination (EMS v2, Tables I and IV). One panel per system, all with the same "
            "axes; the number of pairs is on a logarithmic axis. The codes are those of the "
            "corpora table."
        ),
    ),
    "ablation": Shown(
        caption="What each change is worth",
        report=(
            "What each change is worth: mean P@1 on Tatoeba over the languages trained on, less "
            "that of the first system, in points (EMS v2, section V-G). Bars are 95 % intervals "
            "of the paired bootstrap over sentences; what another seed would change, they do not "
            "say."
        ),
    ),
    "learning": Shown(
        caption="Learning curves",
        report=(
            "Learning curves against the sentence pairs that a system has seen: P@1 on the "
            "validation pairs, and below it each part of the loss (EMS v2, section III), one "
            "colour per system. Validation is the line with marks, training the thin one. A part "
            "of the loss that a system lacks has no line; a system that was not trained is left "
            "out. At equal pairs all systems have seen the same text."
        ),
    ),
    "learning_languages": Shown(
        caption="Learning curves per language",
        report=(
            "Learning curves by language: P@1 in percent on the validation pairs of each language "
            "with English, the mean of both directions, against the sentence pairs that a system "
            "has seen, of all languages together. One panel per language, all with the same axes, "
            "one line per system. The number above a panel is the last value of the best system, "
            "in its colour. At most 1,000 pairs of a language are searched."
        ),
    ),
}
TIMED = {
    "learning": Shown(
        caption="Learning curves in time",
        report=(
            "The learning curves against minutes of training, validation included, on the machine "
            "of this run. At equal minutes all systems have cost the same: a system with fewer "
            "losses takes less time for a step, and so sees more pairs. Time in which a run was "
            "killed and not yet resumed, and steps that were done twice for it, do not count."
        ),
    ),
    "tradeoff": Shown(
        caption="P@1 against minutes",
        report=(
            "Mean P@1 on Tatoeba over the languages trained on, against minutes of training on "
            "the machine of this run, validation included; one point per system, with the 95 % "
            "interval over sentences. Minutes are on a logarithmic axis."
        ),
    ),
    "ablation": Shown(
        caption="ablation",
        report=(
            "The ablation table (EMS v2, section V-G, Table XIV) with wall seconds of 1,000 steps "
            "on the machine of this run, validation included; the printed ones are of four V100."
        ),
    ),
}
