# Shared by all stages: the checked experiment, the values of its jobs (ems/workflow), short names of folders.
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from ems.base.errors import EmsError
from ems.workflow.jobs import Jobs, demo_source, evalkeys_modules, options, per_attempt
from ems.workflow.rules import LANGUAGES, Workflow, one_of, source_of

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
    **w.constraints,


def shown(path, category, labels):
    """List an output in the report of Snakemake; results/report.html explains it."""
    return report(path, category=category, labels=labels)
