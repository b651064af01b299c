"""List the programs and outside files that an experiment uses, and check that they are trusted.

An experiment may come from elsewhere. The programs that it names run only if `trusted` in
config.yaml, which belongs to this site, has the same text.
"""

import json
from pathlib import Path

from ems.base.errors import mistake
from ems.config.experiment import Experiment
from ems.config.file import Site
from ems.config.systems import LOCATED
from ems.corpora.locations import is_remote


def programs_of(experiment: Experiment) -> dict[str, str]:
    """Return setting -> text of each program: of systems, and of the filters of `clean`."""
    systems = experiment.systems.items()
    programs = {f"systems.{name}": each.place for name, each in systems if each.kind == "command"}
    if experiment.clean.commands:
        from ems.text.commands import check_commands

        for number, command in enumerate(check_commands(experiment.clean)):
            programs[f"clean.commands.{number}"] = command.words[-1]
    return programs


def check_programs(experiment: Experiment, site: Site) -> None:
    """Raise `EmsError` with the lines for config.yaml if the site does not trust a program."""
    unknown = {k: text for k, text in programs_of(experiment).items() if text not in site.trusted}
    if unknown:
        texts = {f"- {json.dumps(text, ensure_ascii=False)}" for text in unknown.values()}
        words = {"experiment": experiment.name, "lines": sorted(texts)}
        raise mistake("programs without trust", settings=unknown, **words)


def paths_outside(experiment: Experiment, site: Site) -> list[str]:
    """Return the places outside of this folder that the experiment itself names to be read."""
    clean, own = experiment.clean, dict(site.sources)
    places = [place for name, place in experiment.sources.items() if place != own.get(name)]
    for _, corpus in experiment.all_corpora():
        places += [corpus.path, corpus.source if corpus.custom else ""]
        places += [path for paths in corpus.paths.values() for path in paths]
        places += [corpus.aligned.folder, corpus.aligned.model or ""] if corpus.aligned else []
    places += [evalset.path for evalset in experiment.evalsets.values()]
    located = [each for each in experiment.systems.values() if LOCATED.get(each.kind) == "model"]
    places += [each.place for each in located] + [each.filter for each in clean.commands]
    places += [clean.similarity.model] if clean.similarity else []
    local = {place for place in places if not is_remote(place)}
    return sorted(p for p in local if not Path(p).resolve().is_relative_to(Path.cwd()))
