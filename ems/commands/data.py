"""Commands that check an experiment, list its downloads, and fetch them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ems.base.errors import EmsError
from ems.base.outputs import Writes
from ems.commands import common
from ems.commands.flags import Choices, Mark

if TYPE_CHECKING:
    from ems.workflow.plan import Plan

FORECAST = "profiles of Snakemake: print the forecast of jobs, time and cluster resources"
FORMS = "OPUS's zip, LASER's WikiMatrix, a text, a Wikipedia dump, or the document of each line"
BUDGET = "maximum number of pairs of OPUS (default: 5M, or none with --files)"
FILES = "files of pairs: a .tsv, .jsonl ..., or both of a.en a.da; en-da=FILE names the languages"
OPUS = "update: address of OPUS's API, or the folder of a clone of its repository"
UNITS = "directory, address or `embedded` (default: published)"
MODEL = "folder for a copy of the exported model, which also names the experiment"
OUR_EXPORT = Writes("whole folder", ours="ems.export:is_export")
FetchSource = Annotated[str, "directory or address to fetch from", Mark.PLACE]


def check(
    experiment: common.OtherExperiment = None,
    profile: Annotated[list[str], FORECAST, Mark.PLACE] = (),
    trained: Annotated[bool, "print the names of all trained systems"] = False,
) -> None:
    """Check an experiment and config.yaml before a run."""
    from ems.workflow.plan import plan
    from ems.workflow.trust import paths_outside, programs_of

    try:
        overrides = {"experiment": experiment} if experiment else {}
        planned = plan(overrides, elsewhere=bool(profile), jobs=True)
        for program in dict.fromkeys(programs_of(planned.experiment).values()):
            common.log.info("it starts a program, which config.yaml trusts: %s", program)
        if outside := paths_outside(planned.experiment, planned.site):
            common.log.info("it reads outside of this folder: %s", ", ".join(outside))
        if planned.sources.lines:
            raise EmsError(planned.sources)
    except EmsError as error:
        *lines, last = str(error).split("\n")
        for line in lines:
            common.log.error(line)
        raise EmsError(last) from None
    _tell_of_settings(planned)
    settings = planned.experiment
    if trained:
        names = [name for name, system in settings.systems.items() if system.trained]
        sys.stdout.writelines(f"{name}\n" for name in names)
    if profile:
        from ems.workflow.forecast import forecast

        sys.stdout.write(forecast(settings, planned.site, profile))


def _tell_of_settings(planned: "Plan") -> None:
    from ems.corpora.catalogue import defects_in
    from ems.corpora.identifier import unknown

    settings = planned.experiment
    if settings.clean.language and (codes := unknown(settings.languages)):
        common.log.warning("clean.language keeps all sides in %s: not known", ", ".join(codes))
    for _, corpus in settings.all_corpora():
        for defect, files in defects_in(corpus).items():
            own = files[0] if len(files) == 1 else f"{len(files)} files"
            common.log.info("%s %s, %s: %s", corpus.label, corpus.version, own, defect)
    swept = len(settings.systems) - len(settings.listed)
    corpora = ", ".join(f"{role} {c.label}/{c.version}" for role, c in settings.all_corpora())
    if through := settings.multiway.through:
        corpora += f", further pairs through {through} of {len(settings.multiway_pairs()):,} "
        corpora += f"language pairs, at most {settings.multiway.most} of a sentence"
    systems = ", ".join(settings.listed) + (f" and {swept} of the sweep" if swept else "")
    about = f"{len(settings.languages)} languages, {corpora}, systems {systems}"
    common.log.info("experiment %s is fine: %s", settings.name, about)
    for line in planned.missing:
        common.log.warning("not on this machine, needed where prepare jobs run: %s", line)


def run(experiment: common.OtherExperiment = None) -> None:
    """Run an experiment with Snakemake, and print its scores."""
    from ems.workflow.run import run_experiment

    sys.stdout.write(run_experiment(common.experiment_of(experiment)))


def quickstart(
    files: Annotated[list[str], FILES, Mark.POSITIONAL],
    languages: Annotated[str, "both languages, in the order of the columns, like en,da"],
    out: Annotated[Path | None, MODEL, OUR_EXPORT] = None,
) -> None:
    """Train and export a model of your own pairs, and measure it."""
    from ems.workflow.run import quickstart as train

    sys.stdout.write(train(files, languages, out))


def corpora(
    action: Annotated[
        Literal["list", "licences", "lock", "search", "update", "probe"], Mark.POSITIONAL
    ],
    language: Annotated[str, "search: a language; probe, lock: a file", Mark.POSITIONAL] = "",
    other: Annotated[str, "other language (default: English), or file", Mark.POSITIONAL] = "",
    languages: Annotated[str, "probe: languages of the sides, like en,da"] = "",
    experiment: common.OtherExperiment = None,
    json: Annotated[bool, "list, search: output as JSON"] = False,
    all: Annotated[bool, "search: results that include small corpora"] = False,
    source: Annotated[str, OPUS] = "",
) -> None:
    """List or lock downloads; search or update OPUS; probe files."""
    needed = {"search": "a language", "probe": "a file"}.get(action, "")
    if action != "lock" and bool(language) != bool(needed):
        found = f"expected {needed or 'nothing more'}, found {language or 'none'}"
        raise EmsError(f"ems corpora {action}: {found}")
    if action == "update":
        from ems.corpora.update import API, update

        sys.stdout.write(update(source or API, common.downloads()))
    elif action == "probe":
        from ems.corpora.moses import probe_files

        paths = [Path(name) for name in (language, other) if name]
        sys.stdout.write(f"{probe_files(paths, languages.split(',')).text}\n")
    elif action == "search":
        from ems.workflow.search import search_text

        sys.stdout.write(search_text(language, other, json, all))
    elif action == "lock" and language:
        from ems.workflow.downloads import pin

        sys.stdout.write(pin(Path(language), Path(common.site_settings().data)))
    elif action == "lock":
        from ems.workflow.downloads import lock_text

        own, data = common.experiment_of(experiment), Path(common.site_settings().data)
        sys.stdout.write(lock_text(own, data))
    else:
        from ems.workflow import downloads

        form = downloads.as_json if json else downloads.as_text
        form = downloads.licences_text if action == "licences" else form
        sys.stdout.write(form(common.experiment_of(experiment)))


def init(
    languages: Annotated[str, "names or codes of languages, like cy,uk,Polish"],
    budget: Annotated[str, BUDGET] = "",
    files: Annotated[list[str], FILES] = (),
    out: Annotated[Path, "experiment file to write", Writes()] = Path("configs/mine.yaml"),
    commercial: Annotated[bool, "leave out corpora whose licence forbids commercial use"] = False,
) -> None:
    """Create an experiment from OPUS or from your own files."""
    from ems.workflow.init import make_experiment

    sys.stdout.write(make_experiment(languages, budget, out, files, commercial))
    common.log.info("%s is written; check it with: ems check --experiment %s", out, out.stem)


def demo_mirror(out: common.OutFolder) -> None:
    """Write the data of the demo."""
    from ems.corpora.demo.mirror import write_mirror
    from ems.corpora.slots import alone

    with alone(out, out / "manifest.json") as made:
        if not made:
            write_mirror(out)


def fetch(
    source: FetchSource,
    corpus: common.CorpusName,
    version: common.Version,
    pair: Annotated[list[str], "language pairs or languages, like de-en", Mark.NAME],
    out: Annotated[Path, "file to write; {pair} stands for each of several pairs", Writes()],
    format: Annotated[Literal["moses", "mined", "text", "dump", "documents"], FORMS] = "moses",
    generated: Annotated[bool, "data made by ems: no lock file"] = False,
    accept: Annotated[str, "why to use a file of which more than half is wrong"] = "",
    receipt: common.Receipt = None,
) -> None:
    """Download language pairs, or languages, of a corpus."""
    from ems.corpora.fetch import Release

    paths = {name: Path(str(out).replace("{pair}", name)) for name in pair}
    if len({*paths.values()}) < len(pair):
        raise EmsError(f"--out {out}: expected {{pair}} in the name of {len(pair)} different files")
    place = (format, source, corpus, version)
    release = Release(*place, not generated, common.downloads(), accept)
    common.write_receipt(receipt, release.fetch_all(paths, not receipt))


def fetch_evalset(
    evalset: Annotated[str, "evaluation set", Choices("ems.config.plugins:sets")],
    code: Annotated[list[str], "languages or archives", Mark.NAME],
    out: common.OutFolder,
    source: Annotated[str, UNITS, Mark.PLACE] = "",
    receipt: common.Receipt = None,
) -> None:
    """Download units of an evaluation set."""
    from ems.config.experiment import EMBEDDED
    from ems.corpora.evalsets.fetch import SetSource

    generated = source == EMBEDDED
    place = f"{common.site_settings().data}/{EMBEDDED}/{evalset}" if generated else source
    units = SetSource(evalset, place, out, not generated, common.downloads())
    common.write_receipt(receipt, units.fetch_all(code, not receipt))
