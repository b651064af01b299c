"""Commands that clean and segment text and train vocabularies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ems.base.outputs import Writes
from ems.commands import common
from ems.commands.flags import Bounds, Mark
from ems.text.tsv import is_pairs

if TYPE_CHECKING:
    from ems.config.experiment import Experiment

VocabularyName = Annotated[str, "name of the vocabulary (default: the one that systems share)"]
Sample = Annotated[Path, "lines that the vocabulary is trained on"]


def wikipedia(
    dump: Annotated[Path, "dump of a Wikipedia, .xml.bz2"],
    language: Annotated[str, "its language", Mark.NAME],
    out: Annotated[Path, "documents to write, and their counts", Writes(suffixes=(".gz", ".json"))],
    state: common.State = None,
    workers: common.Workers = 1,
    piece_streams: Annotated[int, Bounds(0, 1_000_000), Mark.HIDDEN] = 0,
) -> None:
    """Make documents of the articles of a Wikipedia."""
    from ems.corpora.slots import alone
    from ems.text.wikipedia import STREAMS, check_needs, write_wikipedia

    check_needs()
    with alone(out, out.with_suffix(".json")) as made:
        if not made:
            counts = write_wikipedia(dump, language, out, state, workers, piece_streams or STREAMS)
            common.log.info("%s: %s", out, counts)


def evalkeys(
    experiment: common.ExperimentName,
    out: common.OutFile,
    evalset: common.Folders = (),
    validation: Annotated[list[Path], "clean validation text to take in place of the sets"] = (),
    expect: common.Expected = "",
) -> None:
    """Collect the evaluation sentences, or those of the validation text."""
    from ems.text.evalkeys import eval_files, held_out_files, write_eval_keys

    settings = common.planned(experiment, expect, "evalkeys")
    files = held_out_files(validation) if validation else eval_files(settings, evalset)
    kept = settings.clean.format_characters
    count = write_eval_keys(settings.decontaminate.key, files, out, kept)
    common.log.info("%s: %s keys of evaluation sentences", out, f"{count:,}")


def clean(
    experiment: common.ExperimentName,
    corpus: common.Corpus,
    version: common.Version,
    pair: common.Pair,
    archives: Annotated[list[Path], "downloads of the corpus"],
    keys: Annotated[Path, "evaluation sentences"],
    out: Annotated[Path, "pair file to write, and its report", Writes(suffixes=("", ".json"))],
    documents: Annotated[Path | None, "document of each line, where a corpus is divided"] = None,
    held_out: Annotated[Path | None, "validation sentences, for `decontaminate.validation`"] = None,
    earlier: Annotated[
        list[Path], "clean pairs of the corpora before it, for `clean.duplicates: across`"
    ] = (),
    expect: common.Expected = "",
) -> None:
    """Cap, tidy and decontaminate a corpus of pairs or of documents."""
    from ems.text.clean import Source, clean_corpus

    names = {"label": corpus, "version": version, "pair": pair}
    settings = common.planned(experiment, expect, "clean", **names)
    files = {"archives": tuple(archives), "earlier": tuple(earlier)}
    source = Source(**names, **files, documents=documents, held_out=held_out)
    common.log.info("%s: %s", out, clean_corpus(settings, source, keys, out))


def report(
    experiment: common.ExperimentName,
    entries: Annotated[list[Path], "reports of `ems clean`, and folders of `ems multiway`"],
    out: common.OutFile,
    expect: common.Expected = "",
) -> None:
    """Merge the decontamination reports."""
    from ems.text.clean import merge_reports

    settings = common.planned(experiment, expect, "evalkeys")
    every = [sorted(path.glob("*-*.json")) if path.is_dir() else [path] for path in entries]
    files = [path for each in every for path in each]
    merge_reports(settings, files, out)
    common.log.info("%s: %s corpora and pairs", out, len(files))


def segment(
    experiment: common.ExperimentName,
    source: Annotated[Path, "pair file"],
    out: common.OutFile,
    state: common.State = None,
    workers: common.Workers = 1,
    piece_lines: common.PieceLines = None,
    expect: common.Expected = "",
) -> None:
    """Segment the words of a pair file, or of documents."""
    from ems.text.bulk import LINES, segment_tsv
    from ems.text.tsv import codes_of

    codes = codes_of(source)
    settings = common.planned(experiment, expect, "segment", pair="-".join(codes))
    names = tuple(settings.segmenters[code] for code in codes)
    segment_tsv(source, out, codes, names, state, workers, piece_lines or LINES)


def multiway(
    experiment: common.ExperimentName,
    sources: Annotated[list[Path], "segmented pair files with the language in common"],
    out: Annotated[Path, "folder of pair files to write", Writes("whole folder", ours=is_pairs)],
    reports: Annotated[Path, "folder of their reports", Writes("whole folder", ours=is_pairs)],
    expect: common.Expected = "",
) -> None:
    """Make further pairs of sentences with a translation in common."""
    from ems.text.multiway import join_pairs

    settings = common.planned(experiment, expect, "multiway")
    counts = join_pairs(settings, sources, out, reports)
    common.log.info("%s: %s of %s pairs", out, f"{counts['kept']:,}", f"{counts['read']:,}")


def _of_vocabulary(experiment: str, expected: str, name: str) -> "Experiment":
    """Return the experiment with the languages of a vocabulary ("": the shared one)."""
    from ems.config.systems import SHARED

    name = name or SHARED
    return common.planned(experiment, expected, "vocabulary", vocabulary=name).of_vocabulary(name)


def sample(
    experiment: common.ExperimentName,
    sources: Annotated[list[Path], "segmented pair files"],
    out: Annotated[Path, "lines and their languages", Writes(suffixes=("", ".languages"))],
    name: VocabularyName = "",
    expect: common.Expected = "",
) -> None:
    """Sample lines for the vocabulary."""
    from ems.text.subwords import write_sample

    quota = write_sample(_of_vocabulary(experiment, expect, name), sources, out)
    common.log.info("%s: lines per language %s", out, quota)


def vocabulary(
    experiment: common.ExperimentName,
    sample: Sample,
    out: common.OutFile,
    name: VocabularyName = "",
    expect: common.Expected = "",
) -> None:
    """Train the SentencePiece vocabulary."""
    from ems.text.subwords import train_vocabulary

    pieces = train_vocabulary(_of_vocabulary(experiment, expect, name), sample, out)
    common.log.info("%s: %s pieces", out, f"{pieces:,}")


def vocabulary_report(
    experiment: common.ExperimentName,
    vocabulary: common.Vocabulary,
    sample: Sample,
    out: common.OutFile,
    name: VocabularyName = "",
    expect: common.Expected = "",
) -> None:
    """Report what the vocabulary does to each language."""
    from ems.text.vocabulary_report import write_vocabulary_report

    _of_vocabulary(experiment, expect, name)
    written = write_vocabulary_report(vocabulary, sample, out)
    common.log.info("%s: %s languages", out, len(written["languages"]))
