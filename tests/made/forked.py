"""Forked processes: Snakemake and its `ems` jobs with their libraries imported, scripts of perf/,
and functions that are measured.

PyTorch alone takes 1.6 s of CPU time. Nothing of ems is imported before a fork, since each project
has its own copy. Jobs that Slurm runs, and jobs that a test kills, are ordinary processes.
"""

import atexit
import gc
import importlib
import json
import multiprocessing
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PRELOAD = "numpy pandas pydantic ruamel.yaml psutil torch safetensors.torch sentencepiece regex"
PRELOAD += " matplotlib.figure matplotlib.backends.backend_svg matplotlib.backends.backend_agg"
PRELOAD += " scipy.sparse scipy.stats urllib.request snakemake.cli"
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"-"], [0, 1, 2])
server.sendall(json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
status = int(server.recv(16) or 1)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
multiprocessing.set_forkserver_preload(["torch"])  # for functions that a test forks
_folders: list[Path] = []  # of the server of this process
_servers: list[subprocess.Popen[bytes]] = []  # it ends when its standard input is closed


def folder() -> Path:
    """Return a folder for PATH whose `ems` and `snakemake` ask a server; start it at first."""
    if not _folders:
        path = Path(tempfile.mkdtemp(prefix="ems-jobs-"))
        for program in (path / "ems", path / "snakemake"):
            program.write_text(CLIENT.format(python=sys.executable, address=f"{path}/socket"))
            program.chmod(0o755)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{path}/socket")
        listener.listen(64)
        words = [sys.executable, __file__, str(listener.fileno())]
        options = {"pass_fds": [listener.fileno()], "start_new_session": True}
        _servers.append(subprocess.Popen(words, stdin=subprocess.PIPE, **options))
        _folders.append(path)
    return _folders[0]


def serve(listener: socket.socket) -> None:
    """Fork a job for each connection, and send its exit status when it ends.

    The server ends with the process that started it.
    """
    for name in PRELOAD.split():
        importlib.import_module(name)
    gc.freeze()  # imported objects are not garbage, and collecting them copies their memory
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    clients: dict[int, socket.socket] = {}  # by the process of their job
    while 0 not in (ready := select.select([listener, woken, 0], [], [])[0]):
        if listener in ready:
            client, _ = listener.accept()
            clients[start(client, [listener, woken, wake, *clients.values()])] = client
        if woken in ready:
            woken.recv(64)
            while clients and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                with clients.pop(ended[0]) as client:
                    client.sendall(str(os.waitstatus_to_exitcode(ended[1])).encode())


def start(client: socket.socket, ours: list[socket.socket]) -> int:
    """Fork the job that a client asks for; return its process."""
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    with client.makefile() as reader:
        words, place, environment = json.loads(reader.read())
    if (job := os.fork()) == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for connection in [client, *ours]:
            connection.close()
        become(words, place, environment, streams)
    for stream in streams:
        os.close(stream)
    return job


def become(words: list[str], place: str, environment: dict[str, str], streams: list[int]) -> None:
    """Turn this process into the command."""
    assert not any(name.partition(".")[0] == "ems" for name in sys.modules)
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # of the environment
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.path[:1] = environment["PYTHONPATH"].split(os.pathsep)  # in the place of tests/made
    sys.argv = words
    status = 1
    try:
        runpy.run_module(Path(words[0]).name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code or 0
    threading._shutdown()
    sys.stdout.flush()
    atexit._run_exitfuncs()
    os._exit(status)  # to destroy what the server imported would copy its memory: 0.3 s


def script(words, out):
    """Start `python SCRIPT ...`, which is `words`; its standard output goes to the file `out`."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_become_script, args=(words, out))
    process.start()
    return process


def _become_script(words, out):
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).parent))
    runpy.run_path(words[0], run_name="__main__")


def peak():
    """The peak of resident memory of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) * 1024


def _store(out, work, arguments):
    out.value = work(*arguments)


def result(work, *arguments):
    """The integer that a function returns in its own process."""
    context = multiprocessing.get_context("forkserver")
    out = context.Value("q", -1)
    process = context.Process(target=_store, args=(out, work, arguments))
    process.start()
    process.join(300)
    assert process.exitcode == 0
    return out.value


def _growth(work, *arguments):
    before = peak()
    work(*arguments)
    return peak() - before


def growth(work, *arguments):
    """By how many bytes a function raises the peak of resident memory, in its own process."""
    return result(_growth, work, *arguments)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
