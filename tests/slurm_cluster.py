"""A private Slurm of one machine, for the tests: real daemons, real jobs, a GPU that is /dev/null.

No munge, no cgroups, no systemd: any root shell or container can run it. A shim shadows `srun`,
because the executor strips SLURM_CONF from the step that it starts. The default partition is the
only one, as the shipped profile names none.
"""

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

CONTROL_PORT, NODE_PORT = 17827, 17828
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel", "sinfo")


def installed() -> bool:
    """Whether Slurm is here and this user may run its daemons."""
    return all(map(shutil.which, PROGRAMS)) and os.geteuid() == 0


class Cluster:
    """A running one-node cluster; `environment` is what its users need."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("state", "spool", "log", "run", "bin"):
            (root / name).mkdir(parents=True)
        self.config = root / "slurm.conf"
        self.config.write_text(_config(root))
        (root / "cgroup.conf").write_text("")
        (root / "gres.conf").write_text("NodeName=n1 Name=gpu File=/dev/null\n")
        shim = root / "bin/srun"
        shim.write_text(f'#!/bin/sh\nSLURM_CONF={self.config} exec {shutil.which("srun")} "$@"\n')
        shim.chmod(0o755)
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(self.config),
            "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Start the daemons and wait until the node is idle."""
        self.call("slurmctld", "-c", "-f", str(self.config))
        self.call("slurmd", "-N", "n1", "-f", str(self.config))
        for _ in range(200):
            if "idle" in self.call("sinfo", "-h", "-o", "%T"):
                return
            time.sleep(0.1)
        logs = "\n".join(path.read_text()[-2000:] for path in (self.root / "log").glob("*.log"))
        raise RuntimeError(f"the node did not become idle:\n{logs}")

    def stop(self) -> None:
        """Cancel what runs and stop the daemons."""
        self.call("scancel", "--user", getpass.getuser())
        for pid in (self.root / "run").glob("*.pid"):
            subprocess.run(["kill", pid.read_text().strip()])
        time.sleep(1)

    def call(self, *command: str) -> str:
        """Run a Slurm command; its output."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout

    def jobs(self) -> list[dict[str, str]]:
        """Every job that the controller remembers, as scontrol shows it."""
        lines = self.call("scontrol", "--oneliner", "show", "jobs", "--details").splitlines()
        fields = [[word.partition("=") for word in line.split()] for line in lines if "=" in line]
        return [{name: value for name, _, value in job} for job in fields]


def _config(root: Path) -> str:
    host = socket.gethostname().partition(".")[0]
    user = getpass.getuser()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 512  # MB
    node = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={NODE_PORT} CPUs={os.cpu_count()}"
    settings = {
        "ClusterName": "ems-test",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthType": "auth/none",
        "CredType": "cred/none",
        "CryptoType": "crypto/none",
        "SlurmctldPort": CONTROL_PORT,
        "StateSaveLocation": root / "state",
        "SlurmdSpoolDir": root / "spool/%n",
        "SlurmctldPidFile": root / "run/slurmctld.pid",
        "SlurmdPidFile": root / "run/slurmd-%n.pid",
        "SlurmctldLogFile": root / "log/slurmctld.log",
        "SlurmdLogFile": root / "log/slurmd-%n.log",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU_Memory",
        "ReturnToService": 2,
        "MinJobAge": 3600,
        "KillWait": 3,
        "SchedulerParameters": "sched_interval=1,bf_interval=1,defer",
        "GresTypes": "gpu",
        "NodeName": f"n1 {node} RealMemory={memory} Gres=gpu:1 State=UNKNOWN",
        "PartitionName": "only Nodes=ALL Default=YES MaxTime=3-00:00:00 State=UP",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())
