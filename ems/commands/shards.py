"""Commands that make token shards and look into them."""

from pathlib import Path
from typing import Annotated, Literal

from ems.base.errors import EmsError
from ems.base.outputs import Writes
from ems.commands import common
from ems.commands.flags import Bounds, Mark
from ems.shards.index import is_several, is_shards


def _ours(folder: Path) -> bool:
    return is_shards(folder) or is_several(folder)


def shards(
    source: Annotated[Path, "segmented pair file, or folder of them"],
    vocabulary: common.Vocabulary,
    out: Annotated[Path, "folder to write", Writes("whole folder", ours=_ours)],
    languages: Annotated[list[str], "of a folder: languages of its pairs (default: all)"] = (),
    state: common.State = None,
    workers: common.Workers = 1,
    piece_lines: common.PieceLines = None,
) -> None:
    """Encode pair files into token shards."""
    from ems.shards.writer import PAIRS, write_several, write_shards

    pairs = piece_lines or PAIRS
    if source.is_dir():
        folders = write_several(source, vocabulary, out, state, workers, pairs, languages)
        common.log.info("%s: %s language pairs", out, f"{len(folders):,}")
        return
    if languages:
        raise EmsError(f"--languages: {source} is one pair file; give a folder of them, or neither")
    manifest = write_shards(source, vocabulary, out, state, workers, pairs)
    common.log.info("%s: %s", out, manifest)


def index(
    training: Annotated[list[Path], "folders of shards to train on"],
    out: common.OutFile,
    validation: Annotated[list[Path], "folders of shards to validate on"] = (),
) -> None:
    """List the shards of an experiment."""
    from ems.shards.index import folders_in, write_index

    folders = [folder for each in training for folder in folders_in(each)]
    roles = {"train": folders, "validation": list(validation)}
    common.log.info("%s: %s shards", out, write_index(roles, out))


def inspect(
    row: Annotated[int, "number of the pair, from 0", Bounds(0, 2**63 - 1)],  # int64 in shards
    index: Annotated[Path | None, "list of shards"] = None,
    shard: Annotated[Path | None, "folder of shards, or of one"] = None,
    vocabulary: Annotated[Path | None, "SentencePiece model, if it was moved"] = None,
    pair: Annotated[str | None, "language pair, like de-en", Mark.NAME] = None,
    role: Annotated[Literal["train", "validation"], "what the shards are for"] = "train",
    mined: Annotated[Path | None, "folder of mined pairs; --index lists their documents"] = None,
) -> None:
    """Show a pair of the shards, or a mined one, and where it comes from."""
    from ems.shards.inspect import inspect_folder, inspect_index, inspect_mined

    if mined:
        if index is None or shard:
            raise EmsError("ems inspect --mined FOLDER: give --index FILE with it, and no --shard")
        print(inspect_mined(mined, index, pair, row, vocabulary))
        return
    if (index is None) == (shard is None):
        raise EmsError("ems inspect: give either --index FILE and --pair, or --shard FOLDER")
    if shard:
        print(inspect_folder(shard, pair, row, vocabulary))
    elif pair is None:
        raise EmsError("ems inspect --index: give the language pair too, like --pair de-en")
    else:
        print(inspect_index(index, role, pair, row, vocabulary))


def verify(
    index: Annotated[Path | None, "list of shards"] = None,
    data: Annotated[Path | None, "folder of downloads"] = None,
    experiment: common.OtherExperiment = None,
) -> None:
    """Check all shards, or downloads, against their checksums."""
    if index is None and data is None:
        raise EmsError("ems verify: give --index FILE for shards, --data FOLDER for downloads")
    if index:
        from ems.shards.index import read_index
        from ems.shards.inspect import verify

        folders = [folder for listed in read_index(index).values() for folder in listed]
        count, pairs = verify(folders)
        common.log.info("%s: %s shards with %s pairs are whole", index, count, f"{pairs:,}")
    if data:
        from ems.corpora.content import check_downloads

        count, damaged = check_downloads(data)
        if damaged:
            common.log.error("%s: %s of %s downloads changed", data, len(damaged), count)
            *others, last = (each.message(experiment or "", str(data)) for each in damaged)
            for message in others:
                common.log.error("%s", message)
            raise EmsError(last)
        common.log.info("%s: %s downloads are whole", data, count)
