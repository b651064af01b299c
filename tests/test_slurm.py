"""`snakemake --profile slurm all` on a real Slurm, through the shipped profile, unedited."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from conftest import copy_project, needs
from names_made import ON_SLURM, quoted

CONTROL_PORT, NODE_PORT = 17827, 17828
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel", "sinfo")


class Cluster:
    """A private Slurm of one machine: real daemons, real jobs, a GPU that is /dev/null.

    No munge, no cgroups, no systemd: any root shell or container can run it. A shim shadows `srun`,
    because the executor strips SLURM_CONF from the step that it starts. The default partition is
    the only one, as the shipped profile names none. `environment` is what its users need.
    """

    def __init__(self, root):
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

    def start(self):
        """Start the daemons and wait until the node is idle."""
        self.call("slurmctld", "-c", "-f", str(self.config))
        self.call("slurmd", "-N", "n1", "-f", str(self.config))
        for _ in range(200):
            if "idle" in self.call("sinfo", "-h", "-o", "%T"):
                return
            time.sleep(0.1)
        logs = "\n".join(path.read_text()[-2000:] for path in (self.root / "log").glob("*.log"))
        raise RuntimeError(f"the node did not become idle:\n{logs}")

    def stop(self):
        """Cancel what runs and stop the daemons."""
        self.call("scancel", "--user", getpass.getuser())
        for pid in (self.root / "run").glob("*.pid"):
            subprocess.run(["kill", pid.read_text().strip()])
        time.sleep(1)

    def call(self, *command):
        """Run a Slurm command; its output."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout

    def jobs(self):
        """Every job that the controller remembers, as scontrol shows it."""
        lines = self.call("scontrol", "--oneliner", "show", "jobs", "--details").splitlines()
        fields = [[word.partition("=") for word in line.split()] for line in lines if "=" in line]
        return [{name: value for name, _, value in job} for job in fields]


def _config(root):
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


# --- the tests


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    here = all(map(shutil.which, PROGRAMS)) and os.geteuid() == 0
    needs(here, "Slurm is not here or this is not root; on Debian: apt install slurm-wlm munge")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def project(cluster, tmp_path_factory):
    """A project on the cluster; config.yaml names `demo`, so `tiny` comes from --config only. Its
    folder and its data folder have nasty names.
    """
    folder = tmp_path_factory.mktemp("project") / f"{ON_SLURM} {{}} {{x}}"
    folder.mkdir()
    project = copy_project(folder)
    project.edit("config.yaml", "data: data #", f"data: {quoted(ON_SLURM)} #")
    project.edit("config.yaml", "experiment: tiny\n", "experiment: demo\n")
    return _on(cluster, project)


def _on(cluster, project):
    """The project, with the environment of the cluster's users."""
    first = project.environment["PATH"].split(":")[0]
    project.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
    project.environment["PATH"] = f"{first}:{cluster.environment['PATH']}"
    return project


def _once_saved(project, run, text, act):
    """What `act` returns once the training of `ems` has logged a text; None if the run ends."""
    log = project.folder / "results/tiny/logs/train/ems.log"
    while run.poll() is None:
        if log.exists() and text in log.read_text() and (done := act()):
            return done
        time.sleep(0.02)
    return None


def _kill_training(project):
    """kill -9 the training process of system `ems`; whether there was one."""
    processes = [process for process, words in project.jobs() if words >= {"train", "ems"}]
    for process in processes:
        process.kill()
    return bool(processes)


def test_the_tiny_experiment_runs_on_slurm_and_a_killed_training_resumes(
    cluster, project, tiny_run
):
    """One run: GPU and CPUs from scontrol, a kill, the retry, the same tables as locally."""
    profile = yaml.safe_load((project.folder / "slurm/config.yaml").read_text())
    assert "partition" not in str(profile)
    run = project.start(
        "snakemake", "--profile", "slurm", "--config", "experiment=tiny", "--", "all"
    )
    killed = _once_saved(project, run, "checkpoint at step 20", lambda: _kill_training(project))
    output = (project.folder / "started.log").read_text
    assert run.wait() == 0, output()[-5000:]
    assert killed
    _check_resources(cluster)
    text = (project.folder / "results/tiny/logs/train/ems.log").read_text()
    assert int(text.partition("resumed at step ")[2].split()[0]) >= 20
    _check_nothing_leaked(project)
    assert project.tables() == tiny_run.tables()
    assert list(project.folder.parent.rglob("pwned")) == []


def _check_resources(cluster):
    jobs = cluster.jobs()
    training = [job for job in jobs if job["Comment"].startswith("rule_train_")]
    assert len(training) >= 3  # ems, its retry, untrained
    for job in training:
        assert "gres/gpu=1" in job["TRES"] or "gpu:1" in job.get("TresPerJob", ""), job
        assert job["NumCPUs"] == ("2" if "untrained" in job["Comment"] else "1")
    others = [job for job in jobs if job not in training]
    assert others
    assert not any("gres/gpu" in job["TRES"] for job in others)
    states = [job["JobState"] for job in training]
    assert states.count("FAILED") == 1
    assert set(states) == {"FAILED", "COMPLETED"}


def _check_nothing_leaked(project):
    """Inside the jobs the experiment was `tiny`, though config.yaml says `demo`."""
    logs = list((project.folder / "results/tiny/logs").rglob("*.log"))
    texts = [text for text in map(Path.read_text, logs) if "settings of stage" in text]
    assert len(texts) > 10
    assert all("experiment tiny, settings of stage" in text for text in texts)
    assert not (project.folder / "results/demo").exists()


# --- a warning before the time is over


def _warn_training(cluster):
    """Send the training job USR1 as `--signal=USR1@120` does, to its steps; the job's number."""
    running = cluster.call("squeue", "-h", "-t", "R", "-o", "%A").split()
    if running:
        cluster.call("scancel", "--signal=USR1", *running)
    return running and running[0]


def test_a_training_that_slurm_warns_saves_and_is_submitted_again(cluster, finished):
    """It is warned in its first attempt; the second goes on and gives the same model."""
    project = _on(cluster, finished)
    model = project.folder / "results/tiny/models/ems"
    expected = (model / "model.safetensors").read_bytes()
    for path in (*model.iterdir(), project.folder / "results/tiny/logs/train/ems.log"):
        path.unlink()
    run = project.start(
        "snakemake", "--profile", "slurm", "--", f"{model.relative_to(project.folder)}/model.json"
    )
    job = _once_saved(project, run, "checkpoint at step", lambda: _warn_training(cluster))
    output = (project.folder / "started.log").read_text
    assert run.wait() == 0, output()[-5000:]
    attempts = [entry for entry in cluster.jobs() if entry["Comment"].startswith("rule_train_")]
    (first,) = (entry for entry in attempts if entry["JobId"] == job)
    assert first["JobState"] == "FAILED"
    text = (project.folder / "results/tiny/logs/train/ems.log").read_text()
    assert "resumed at step" in text
    assert (model / "model.safetensors").read_bytes() == expected
    logs = (project.folder / ".snakemake/slurm_logs").rglob("*.log")
    assert any("stopped by SIGUSR1 after step" in path.read_text() for path in logs)
