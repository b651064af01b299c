"""Commands that check an experiment, list what it downloads, and fetch it."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from ems.commands import common
from ems.errors import EmsError
from ems.flags import Choices, Mark
from ems.outputs import Writes

Source = Annotated[str, "directory or address to fetch from", Mark.PLACE]


def check(experiment: common.OtherExperiment = None) -> None:
    """Check config.yaml and an experiment."""
    from ems.plan import plan

    try:
        run = plan({"experiment": experiment} if experiment else {}, jobs=True)
        if run.sources.lines:
            raise EmsError(run.sources)
    except EmsError as error:
        *lines, last = str(error).split("\n")
        for line in lines:
            common.log.error(line)
        raise EmsError(last) from None
    settings = run.experiment
    swept = len(settings.systems) - len(settings.listed)
    corpora = ", ".join(f"{role} {c.label}/{c.version}" for role, c in settings.all_corpora())
    common.log.info(
        "experiment %s is fine: %s languages, %s, systems %s",
        settings.name,
        len(settings.languages),
        corpora,
        ", ".join(settings.listed) + (f" and {swept} of the sweep" if swept else ""),
    )


def corpora(
    action: Annotated[Literal["list", "update"], Mark.POSITIONAL],
    experiment: common.OtherExperiment = None,
    json: Annotated[bool, "list: JSON"] = False,
    csv: Annotated[bool, "list: CSV with a row per corpus and pair"] = False,
    db: Annotated[Path | None, "update: OpusTools' database, opusdata.db"] = None,
    out: Annotated[Path, "update: table to write", Writes()] = Path("ems/languages/opus.tsv"),
) -> None:
    """List what an experiment downloads, or update the table of OPUS's files."""
    if action == "list":
        from ems.downloads import as_csv, as_json, as_text

        form = as_json if json else as_csv if csv else as_text
        sys.stdout.write(form(common.experiment_of(experiment)))
        return
    from ems.corpora.opus_database import update_facts

    if db is None:
        raise EmsError("ems corpora update: give OpusTools' database, --db FILE")
    common.log.info("%s: %s files", out, update_facts(db, out))


def demo_mirror(out: common.OutFolder) -> None:
    """Write the embedded demo data."""
    from ems.corpora.demo.mirror import write_mirror

    write_mirror(out)


def fetch(
    source: Source,
    corpus: common.Corpus,
    version: common.Version,
    pair: common.Pair,
    out: common.OutFile,
    format: Annotated[
        Literal["moses", "mined", "text", "dump"],
        "OPUS's zip, LASER's WikiMatrix, documents of one language, or a dump of a Wikipedia",
    ] = "moses",
    generated: common.Generated = False,
) -> None:
    """Fetch and check one pair of a corpus, or the documents of one language."""
    from ems.corpora.fetch import fetch_dump, fetch_mined, fetch_moses, fetch_text

    locked, downloads = not generated, common.downloads()
    if format == "mined":
        entry = fetch_mined(source, pair, out, locked, downloads)
    elif format == "text":
        entry = fetch_text(source, corpus, version, out, locked, downloads)
    elif format == "dump":
        entry = fetch_dump(source, pair, version, out, downloads)
    else:
        entry = fetch_moses(source, corpus, version, pair, out, locked, downloads)
    common.log.info("%s: %s", out, entry)


def fetch_documents(
    source: Source, corpus: common.Corpus, version: common.Version, out: common.OutFile
) -> None:
    """Fetch the documents of a corpus's lines."""
    from ems.corpora import fetch

    entry = fetch.fetch_documents(source, corpus, version, out, common.downloads())
    common.log.info("%s: %s", out, entry)


def fetch_evalset(
    evalset: Annotated[str, "evaluation set", Choices("ems.benchmarks", "sets")],
    code: Annotated[str, "language or archive", Mark.NAME],
    out: common.OutFolder,
    source: Annotated[str, "directory, address, `embedded` (default: published)", Mark.PLACE] = "",
) -> None:
    """Fetch one language, or one archive, of an evaluation set."""
    from ems.config import EMBEDDED
    from ems.evalsets import fetch

    generated = source == EMBEDDED
    place = f"{common.site_settings().data}/{EMBEDDED}/{evalset}" if generated else source
    count = fetch.fetch_evalset(evalset, place, code, out, not generated, common.downloads())
    common.log.info("%s %s: %s read in %s", evalset, code, count, out)
