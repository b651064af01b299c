# Shared by all stages: the checked experiment, the values of its jobs (ems/workflow), short names of folders.
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from ems.base.errors import EmsError
from ems.base.schema import LABEL, NAME
from ems.workflow.jobs import Jobs, demo_source, evalkeys_modules, options, per_attempt
from ems.workflow.rules import FORMS, LANGUAGES, Workflow, one_of, source_of

try:
    w = Workflow(config, main=workflow.is_main_process, dry_run=workflow.output_settings.dryrun)
    w.prepare()
except EmsError as error:
    raise WorkflowError(str(error)) from None
for line in w.missing:
    logger.warning(f"not on this machine, needed where prepare jobs run: {line}")

job = Jobs(w)
config["experiment"] = w.name  # shown on the first page of the report
RESULTS, LOGS, COSTS, DATA = w.results, w.logs_folder, w.costs, w.data
PART = "{label}-{version}-{part}"  # of a corpus, in names of logs


wildcard_constraints:
    corpus=NAME,
    file=NAME,
    version=NAME,
    kind="opus|documents",
    form=one_of(FORMS),
    label=LABEL,
    pair=LANGUAGES,
    part=rf"{LANGUAGES}(\.\.{LANGUAGES})?",
    evalset="[a-z0-9]+",
    vocabulary=one_of(w.experiment.vocabularies),
    system=one_of(w.experiment.systems),
    benchmark=one_of(w.usable),
    table=one_of(w.tables),
    figure=one_of(w.figures),


def shown(path, category, labels):
    """List an output in the report of Snakemake; results/report.html explains it."""
    return report(path, category=category, labels=labels)
