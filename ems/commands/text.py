"""Commands that clean and segment text, train vocabularies, make and inspect shards."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ems.base.errors import EmsError, mistake
from ems.base.outputs import Writes
from ems.base.texts import STREAM
from ems.commands import common
from ems.commands.flags import Bounds, Mark

if TYPE_CHECKING:
    from ems.config.experiment import Experiment

OUR_PAIRS = Writes("whole folder", ours="ems.text.tsv:is_pairs")
OUR_SHARDS = Writes("whole folder", ours="ems.shards.index:holds_shards")
VocabularyName = Annotated[str, "name of the vocabulary (default: the shared one)"]
Sample = Annotated[Path, "lines to train the vocabulary on"]


def wikipedia(
    dump: Annotated[Path, "dump of a Wikipedia, .xml.bz2"],
    language: Annotated[str, "language of the dump", Mark.NAME],
    out: Annotated[Path, "documents and counts to write", Writes(suffixes=(".gz", ".json"))],
    state: common.State = None,
    workers: common.Workers = 1,
    piece_streams: Annotated[int, Bounds(0, 1_000_000), Mark.HIDDEN] = 0,
) -> None:
    """Extract documents from a Wikipedia dump."""
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
    validation: Annotated[list[Path], "clean validation text, instead of evaluation sets"] = (),
    expect: common.Expected = "",
) -> None:
    """Collect the keys of sentences to keep out of training."""
    from ems.text.evalkeys import eval_files, held_out_files, write_eval_keys

    settings = common.planned(experiment, expect, "evalkeys")
    files = held_out_files(validation) if validation else eval_files(settings, evalset)
    kept = settings.clean.format_characters
    count = write_eval_keys(settings.decontaminate.key, files, out, kept)
    common.log.info("%s: %s keys of evaluation sentences", out, f"{count:,}")


def clean(
    languages: Annotated[str, "languages of the two columns, like en,da"],
    pairs: Annotated[Path, "TSV with a pair per line; - for stdin", Mark.STREAM] = STREAM,
    out: Annotated[Path, "file to write; - for stdout", Mark.STREAM, Writes()] = STREAM,
    filters: Annotated[list[str], "names of filters, or none (default: all)"] = (),
    repairs: Annotated[list[str], "names of repairs, or none (default: all)"] = (),
    language: Annotated[bool, "also remove other languages, and exchange swapped sides"] = False,
    report: Annotated[Path | None, "JSON file of counts and examples to write", Writes()] = None,
) -> None:
    """Clean the pairs of a TSV, or of a pipe."""
    from ems.base.files import write_json
    from ems.base.schema import checked
    from ems.config.text import CleanSettings
    from ems.text.clean import CleanReport, counts_of
    from ems.text.clean_tsv import clean_tsv
    from ems.use.stream import write

    codes = languages.split(",")
    if len({*codes}) != 2:
        raise mistake("no pair of languages", found=languages)
    chosen = {"filters": [*filters] or "default", "repairs": [*repairs] or "default"}
    chosen = {key: "none" if names == ["none"] else names for key, names in chosen.items()}
    chosen |= {"language": {"swapped": "swap"}} if language else {}
    settings, counts = checked(CleanSettings, chosen, "ems clean"), CleanReport()
    try:
        write(out, clean_tsv(pairs, codes, settings, counts))
    finally:
        if report:
            names = ("read", "kept", "removed", "changed", "examples")
            write_json(report, {"languages": codes, **counts_of(counts, *names)})


def prepare(
    experiment: common.ExperimentName,
    corpus: common.CorpusName,
    version: common.Version,
    pair: Annotated[list[str], "neighbouring language pairs of the corpus", Mark.NAME],
    data: Annotated[Path, "folder of downloads"],
    keys: Annotated[Path, "keys of evaluation sentences"],
    text: Annotated[Path, "folder of text, like results/demo/text", Writes("folder")],
    out: common.OutFile,
    held_out: Annotated[Path | None, "keys of validation sentences, if they are removed"] = None,
    state: common.State = None,
    workers: common.Workers = 1,
    piece_lines: common.PieceLines = None,
    expect: common.Expected = "",
) -> None:
    """Clean and segment language pairs of a corpus in one pass."""
    from ems.base.files import state_of
    from ems.config.experiment import name_of_part, pairs_of_part
    from ems.text.bulk import LINES
    from ems.text.prepare import Part, prepare_pairs

    part, names = name_of_part(pair), {"label": corpus, "version": version}
    settings = common.planned(experiment, expect, "prepare", **names, part=part)
    if (known := pairs_of_part(settings.corpus(**names)[1], part)) != pair:
        raise EmsError(f"--pair: expected neighbours, {' '.join(known)}; found {' '.join(pair)}")
    files = (data, keys, held_out, text, state or state_of(out))
    job = Part(settings, corpus, version, pair, *files, workers, piece_lines or LINES)
    common.log.info("%s", prepare_pairs(job, out))


def merge_reports(
    experiment: common.ExperimentName,
    entries: Annotated[list[Path], "reports of `ems prepare`, and folders of `ems multiway`"],
    out: common.OutFile,
    expect: common.Expected = "",
) -> None:
    """Merge the decontamination reports."""
    from ems.text import clean

    settings = common.planned(experiment, expect, "evalkeys")
    groups = [sorted(path.glob("*-*.json")) if path.is_dir() else [path] for path in entries]
    files = [path for group in groups for path in group]
    clean.merge_reports(settings, files, out)
    common.log.info("%s: %s corpora and pairs", out, len(files))


def multiway(
    experiment: common.ExperimentName,
    sources: Annotated[list[Path], "segmented pair files of the common language"],
    out: Annotated[Path, "folder of pair files to write", OUR_PAIRS],
    reports: Annotated[Path, "folder of reports to write", OUR_PAIRS],
    expect: common.Expected = "",
) -> None:
    """Join sentences that share a translation into further pairs."""
    from ems.text.multiway import join_pairs

    settings = common.planned(experiment, expect, "multiway")
    counts = join_pairs(settings, sources, out, reports)
    common.log.info("%s: %s of %s pairs", out, f"{counts['kept']:,}", f"{counts['read']:,}")


def _of_vocabulary(experiment: str, expected: str, name: str) -> "Experiment":
    """Load the experiment with only the languages of a vocabulary ("": the shared one)."""
    from ems.config.systems import SHARED

    name = name or SHARED
    return common.planned(experiment, expected, "vocabulary", vocabulary=name).of_vocabulary(name)


def sample(
    experiment: common.ExperimentName,
    sources: Annotated[list[Path], "segmented pair files"],
    out: Annotated[Path, "text and its languages to write", Writes(suffixes=("", ".languages"))],
    name: VocabularyName = "",
    expect: common.Expected = "",
) -> None:
    """Sample the lines to train a vocabulary on."""
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
    """Train a SentencePiece vocabulary."""
    from ems.text.subwords import train_vocabulary

    pieces = train_vocabulary(_of_vocabulary(experiment, expect, name), sample, out)
    common.log.info("%s: %s pieces", out, f"{pieces:,}")


def vocabulary_report(
    experiment: common.ExperimentName,
    vocabulary: common.VocabularyPath,
    sample: Sample,
    out: common.OutFile,
    name: VocabularyName = "",
    expect: common.Expected = "",
) -> None:
    """Report how the vocabulary splits each language."""
    from ems.text.vocabulary_report import write_vocabulary_report

    _of_vocabulary(experiment, expect, name)
    written = write_vocabulary_report(vocabulary, sample, out)
    common.log.info("%s: %s languages", out, len(written["languages"]))


def shards(
    source: Annotated[list[Path], "segmented pair files, or a folder of pair files"],
    vocabulary: common.VocabularyPath,
    out: Annotated[Path, "folder of shards to write", OUR_SHARDS],
    languages: Annotated[list[str], "languages to take from a folder (default: all)"] = (),
    state: common.State = None,
    workers: common.Workers = 1,
    piece_lines: common.PieceLines = None,
    receipt: common.Receipt = None,
) -> None:
    """Encode text into shards of token ids."""
    from ems.shards.writer import PAIRS, write_each, write_several, write_shards

    given = [vocabulary, out, state, workers, piece_lines or PAIRS]
    folder = source[0].is_dir()
    if languages and not folder:
        raise EmsError(f"--languages: {source[0]} is one pair file; give a folder, or no flag")
    if receipt:
        common.write_receipt(receipt, write_each(source, *given))
    elif len(source) > 1:
        raise EmsError(f"--source: {len(source)} files; give one, or --receipt as well")
    elif folder:
        folders = write_several(source[0], *given, languages)
        common.log.info("%s: %s language pairs", out, f"{len(folders):,}")
    else:
        common.log.info("%s: %s", out, write_shards(source[0], *given))


def index(
    training: Annotated[list[Path], "folders of shards to train on"],
    out: common.OutFile,
    validation: Annotated[list[Path], "folders of shards to validate on"] = (),
) -> None:
    """List the shards of an experiment in one file."""
    from ems.shards.index import folders_in, write_index

    folders = [folder for parent in training for folder in folders_in(parent)]
    roles = {"train": folders, "validation": list(validation)}
    common.log.info("%s: %s shards", out, write_index(roles, out))


def inspect(
    row: Annotated[int, "number of the pair, from 0", Bounds(0, 2**63 - 1)],  # int64 in shards
    index: Annotated[Path | None, "list of shards"] = None,
    shard: Annotated[Path | None, "folder of one or more shards"] = None,
    vocabulary: Annotated[Path | None, "SentencePiece model, if it was moved"] = None,
    pair: Annotated[str | None, "language pair, like de-en", Mark.NAME] = None,
    role: Annotated[Literal["train", "validation"], "role of the shards in the list"] = "train",
    mined: Annotated[Path | None, "folder of mined pairs; --index lists their documents"] = None,
) -> None:
    """Show a pair of the shards, or a mined pair, and its origin."""
    from ems.shards.index import read_index, shards_in
    from ems.shards.inspect import inspect_mined, inspect_shards

    if mined:
        if index is None or shard:
            raise EmsError("ems inspect --mined: expected --index as well, and no --shard")
        print(inspect_mined(mined, index, pair, row, vocabulary))
        return
    if (index is None) == (shard is None):
        raise EmsError("ems inspect: expected either --index and --pair, or --shard")
    if shard:
        print(inspect_shards(shards_in(shard), pair, row, vocabulary))
    elif pair is None:
        raise EmsError("ems inspect --index: expected a language pair as well, like --pair de-en")
    else:
        print(inspect_shards(read_index(index)[role], pair, row, vocabulary))


def verify(
    index: Annotated[Path | None, "list of shards"] = None,
    data: Annotated[Path | None, "folder of downloads"] = None,
    experiment: common.OtherExperiment = None,
) -> None:
    """Check shards or downloads against their checksums."""
    if index is None and data is None:
        raise EmsError("ems verify: expected --index for shards, or --data for downloads")
    if index:
        from ems.shards.index import read_index
        from ems.shards.shard import Shard, verify_shards

        shards = [Shard(folder) for listed in read_index(index).values() for folder in listed]
        verify_shards(shards)
        pairs = sum(shard.pairs for shard in shards)
        common.log.info("%s: %s shards with %s pairs are whole", index, len(shards), f"{pairs:,}")
    if data:
        from ems.corpora.content import check_downloads

        count, damaged = check_downloads(data)
        if damaged:
            common.log.error("%s: %s of %s downloads have changed", data, len(damaged), count)
            *others, last = (error.message(experiment or "", str(data)) for error in damaged)
            for message in others:
                common.log.error("%s", message)
            raise EmsError(last)
        common.log.info("%s: %s downloads are whole", data, count)
