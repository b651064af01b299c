"""Stands for perf/gpu_parts.py: prints the figures of a part, or fails as $BROKEN says."""

import json
import os
import signal
import sys
import time

FIGURES = json.loads(os.environ.get("FIGURES", "{}"))  # by part


def emit(figures):
    print("figures: " + json.dumps(figures), flush=True)


def main():
    part = sys.argv[1]
    own, trainer = FIGURES[part], sys.argv[-3]
    if part == "throughput":
        own = {"runs": [run for run in own["runs"] if run["trainer"] == trainer]}
    broken, how = os.environ.get("BROKEN", "- -").split()
    if part == os.environ.get("SLOW"):
        time.sleep(2.5)
    if part != broken or (part == "throughput" and trainer == "ems"):
        emit(own)
    elif how == "emits-and-hangs":
        emit({**own, "running": "test_slow[cuda]"})
        time.sleep(600)
    elif how == "raises":
        raise ValueError("broken")
    elif how == "killed":
        sys.stdout.write('figures: {"half": ')
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        print("hangs", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
