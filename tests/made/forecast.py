"""What Snakemake's executor for Slurm would type for each job, beside what rules/ask.py says."""

import argparse
import json
import shlex
import subprocess
import sys

# rules/ask.py, whose entries also have the command of the executor
DRIVER = """
import sys
sys.path.insert(0, "rules")
import ask
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string

PARAMS = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "workdir"), "x")
PARAMS |= {"account": "", "partition": ""}
plain = ask.entry

def entry(job):
    return plain(job) | {"sbatch": get_submit_command(job, PARAMS) + set_gres_string(job)}

ask.entry = entry
sys.exit(ask.main(sys.argv[1], sys.argv[2:]))
"""


def entries(project, out, *words):
    """The jobs of `all`, each with the command that would submit it."""
    command = [sys.executable, "-c", DRIVER, str(out), *words, "--", "all"]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def typed(command):
    """Nodes, GPUs, their type, CPUs of all tasks, minutes and MB of an `sbatch` command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-t", type=int)
    for flag in ("mem", "mem-per-cpu", "nodes", "ntasks", "ntasks-per-gpu", "ntasks-per-node"):
        parser.add_argument(f"--{flag}", type=int)
    for flag in ("cpus-per-task", "cpus-per-gpu"):
        parser.add_argument(f"--{flag}", type=int)
    parser.add_argument("--gpus", default="")
    parser.add_argument("--gres", default="")
    said, _ = parser.parse_known_args(shlex.split(command))
    nodes = said.nodes or 1
    words = (said.gpus or said.gres.partition(":")[2]).split(":")
    gpus = int(words[-1] or 0) * (1 if said.gpus else nodes)
    tasks = said.ntasks or nodes * (said.ntasks_per_node or 0) or gpus * (said.ntasks_per_gpu or 0)
    cpus = gpus * said.cpus_per_gpu if said.cpus_per_gpu else max(1, tasks) * said.cpus_per_task
    memory = said.mem or cpus * (said.mem_per_cpu or 0) // nodes
    return nodes, gpus, words[0] if len(words) > 1 else "", cpus, said.t, memory
