"""A private Slurm of one machine, and the requests that the executor would submit."""

import argparse
import getpass
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import psutil
from conftest import needs, write_program

PROFILE = ("--profile", "slurm")  # as it is shipped
PORT = 17827  # of the controller; the nodes have the next ones
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel", "sinfo")
# Snakemake that looks at the queue every second. The executor's own waits grow by ten seconds with
# each look at which no job has ended: for most of a test it would sleep.
SNAKEMAKE = f"""#!{sys.executable}
import asyncio
import sys
from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

async def sleep(self):
    await asyncio.sleep(1)

RemoteExecutor.sleep = sleep
sys.exit(main())
"""


class Cluster:
    """Real daemons and real jobs; nodes n1, n2, ... that are all of them this machine.

    No munge, no cgroups, no systemd: any root shell or container can run it. A shim shadows `srun`,
    because the executor strips SLURM_CONF from the step that it starts. `cpus`: of each node
    (default: those of this machine). `partitions`: name -> nodes, the first is the default (one of
    all nodes if absent: the shipped profile names none). `gpus`: node -> its GPUs, like "a100:2".
    """

    def __init__(self, root, nodes, port, cpus=None, partitions=None, gpus=None):
        self.root = root
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        for name in ("state", "spool", "log", "run", "bin"):
            (root / name).mkdir(parents=True)
        self.config = root / "slurm.conf"
        gpus, partitions = gpus or {"n1": "1"}, partitions or {"only": "ALL"}
        cpus = cpus or os.cpu_count()
        self.config.write_text(_config(root, nodes, port, cpus, partitions, gpus))
        (root / "cgroup.conf").write_text("")
        devices = [line for node in gpus for line in _devices(root, node, gpus[node])]
        (root / "gres.conf").write_text("".join(devices))
        shim = f'#!/bin/sh\nSLURM_CONF={self.config} exec {shutil.which("srun")} "$@"\n'
        write_program(root / "bin/srun", shim)
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.config),
            "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self):
        """Start the daemons and wait until the nodes are idle."""
        self.call("slurmctld", "-c", "-f", str(self.config))
        for node in self.nodes:
            self.start_node(node)
        for _ in range(200):
            if self.call("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(self.nodes):
                return
            time.sleep(0.1)
        logs = "\n".join(path.read_text()[-2000:] for path in (self.root / "log").glob("*.log"))
        raise RuntimeError(f"the node did not become idle:\n{logs}")

    def start_node(self, node):
        self.call("slurmd", "-N", node, "-f", str(self.config))

    def stop(self):
        """Cancel what runs, wait until it is gone, and stop the daemons."""
        for _ in range(100):
            if not self.call("squeue", "-h"):
                break
            self.call("scancel", "--user", getpass.getuser())
            time.sleep(0.2)
        daemons = []
        for path in (self.root / "run").glob("*.pid"):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(int(path.read_text()))
                if process.name().startswith("slurm"):  # else one that was killed had this number
                    process.terminate()
                    daemons.append(process)
        for process in psutil.wait_procs(daemons, timeout=10)[1]:
            process.kill()

    def call(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout

    def jobs(self):
        """Every job that the controller remembers, as scontrol shows it."""
        lines = self.call("scontrol", "--oneliner", "show", "jobs", "--details").splitlines()
        fields = [[word.partition("=") for word in line.split()] for line in lines if "=" in line]
        return [{name: value for name, _, value in job} for job in fields]


def _devices(root, node, gpus):
    """The lines of gres.conf for a node's GPUs: links to /dev/null, since each needs a name."""
    kind, _, number = gpus.rpartition(":")
    for index in range(int(number)):
        device = root / f"{node}-gpu{index}"
        device.symlink_to("/dev/null")
        yield f"NodeName={node} Name=gpu {f'Type={kind} ' if kind else ''}File={device}\n"


def _config(root, nodes, port, cpus, partitions, gpus):
    host = socket.gethostname().partition(".")[0]
    user = getpass.getuser()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 512  # MB
    memory *= cpus / os.cpu_count()
    shared = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN"
    shared += f" RealMemory={memory:.0f}"
    lines = f"""
        ClusterName=ems-test SlurmctldHost={host}(127.0.0.1) SlurmUser={user} SlurmdUser={user}
        AuthType=auth/none CredType=cred/none CryptoType=crypto/none SlurmctldPort={port}
        StateSaveLocation={root}/state SlurmdSpoolDir={root}/spool/%n
        SlurmctldPidFile={root}/run/slurmctld.pid SlurmdPidFile={root}/run/slurmd-%n.pid
        SlurmctldLogFile={root}/log/slurmctld.log SlurmdLogFile={root}/log/slurmd-%n.log
        ProctrackType=proctrack/linuxproc TaskPlugin=task/none MpiDefault=none
        JobAcctGatherType=jobacct_gather/none AccountingStorageType=accounting_storage/none
        SwitchType=switch/none SelectType=select/cons_tres SelectTypeParameters=CR_CPU_Memory
        ReturnToService=2 SlurmdParameters=config_overrides MinJobAge=3600 KillWait=3
        SchedulerParameters=sched_interval=1,bf_interval=1,defer GresTypes=gpu
    """.split()  # config_overrides: as many CPUs as this file says
    for number in range(1, nodes + 1):
        gpu = f" Gres=gpu:{gpus[f'n{number}']}" if f"n{number}" in gpus else ""
        lines.append(f"NodeName=n{number} Port={port + number} {shared}{gpu}")
    for number, (name, members) in enumerate(partitions.items()):
        default = f"Default={'NO' if number else 'YES'} MaxTime=3-00:00:00 State=UP"
        lines.append(f"PartitionName={name} Nodes={members} {default}")
    return "".join(f"{line}\n" for line in lines)


def needs_slurm():
    here = all(map(shutil.which, PROGRAMS)) and os.geteuid() == 0
    needs(here, "Slurm is not here or this is not root; on Debian: apt install slurm-wlm munge")


@contextmanager
def running(root, nodes=1, port=PORT, **more):
    """A Slurm that runs, or a skipped test. Two at once need ports of their own."""
    needs_slurm()
    cluster = Cluster(root, nodes, port, **more)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def impatient(folder):
    """A folder for the front of PATH, with a Snakemake that does not sleep long (SNAKEMAKE)."""
    write_program(folder / "impatient" / "snakemake", SNAKEMAKE)
    return folder / "impatient"


def on(cluster, project):
    """The project, with the environment of the cluster's users and an impatient Snakemake."""
    first = project.environment["PATH"].split(":")[0]
    project.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
    path = (str(impatient(cluster.root)), first, cluster.environment["PATH"])
    project.environment["PATH"] = os.pathsep.join(path)
    return project


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
    numbers = "mem mem-per-cpu nodes ntasks ntasks-per-gpu ntasks-per-node cpus-per-task"
    for flag in ("-t", *(f"--{name}" for name in (*numbers.split(), "cpus-per-gpu"))):
        parser.add_argument(flag, type=int)
    for flag in ("--gpus", "--gres"):
        parser.add_argument(flag, default="")
    said, _ = parser.parse_known_args(shlex.split(command))
    nodes = said.nodes or 1
    words = (said.gpus or said.gres.partition(":")[2]).split(":")
    gpus = int(words[-1] or 0) * (1 if said.gpus else nodes)
    tasks = said.ntasks or nodes * (said.ntasks_per_node or 0) or gpus * (said.ntasks_per_gpu or 0)
    cpus = gpus * said.cpus_per_gpu if said.cpus_per_gpu else max(1, tasks) * said.cpus_per_task
    memory = said.mem or cpus * (said.mem_per_cpu or 0) // nodes
    return nodes, gpus, words[0] if len(words) > 1 else "", cpus, said.t, memory
