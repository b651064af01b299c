"""Stands for perf/gpu_parts.py: prints the figures of a part, or fails as $BROKEN says."""

import json
import os
import signal
import sys
import time

MACHINE = {"device": "NVIDIA H200", "cores": 16, "python": "3.12.3", "torch": "2.11.0+cu130"}
MACHINE |= {"packages": "numpy 2.5.2", "system": "Linux", "ems": "0.1.0", "cuda": "13.0"}
MACHINE |= {"driver": "580.1", "memory_gib": 139.8, "matmul": "8192", "matmul_tflops": 790.0}
MACHINE |= {"copy_gb_per_s": 4300.0}
EMS = {"size": "ems", "batch": 608, "model": {"layers": 6, "width": 1024}, "pieces": 60_000}
RATES = {"tokens_per_s": 700_000, "ms_per_step": 43.4, "memory_mb": 20_500}
CASE = {"law": "packed = padded", "case": "test_packed[cuda]", "outcome": "passed", "share": 0.25}
PROFILE = {"what": "size ems", "steps": 20, "ms_per_step": 43.0, "idle": 0.031, "waits": 20}
PROFILE |= {"kernels": [{"name": "gemm", "calls": 9, "ms": 8, "share": 0.6}]}
FIGURES = {
    "data": {
        **{"machine": MACHINE, "text": "the embedded demo", "pairs": 7000},
        **{"tokens_per_pair": 50.7, "data_seconds": 3.1},
    },
    "laws": {"cases": [CASE, {**CASE, "share": 0.5, "same_bits": False}]},
    "throughput": {
        "runs": [
            {**EMS, **RATES, "trainer": "ems", "pairs_per_s": 12_000, "tflops": 284, "mfu": 0.287},
            {**EMS, **RATES, "trainer": "st-loop", "pairs_per_s": 4_000, "tflops": 91},
            {**EMS, **RATES, "trainer": "ems-compiled", "pairs_per_s": 14_000, "tflops": 332},
        ]
    },
    "training": {
        **{"system": "gpu-ten-minutes", "parameters": 301_000_000, "batch": 4096, "steps": 3000},
        **{"seconds": 60.0, "pairs_per_s": 204_800.0, "steps_in_ten_minutes": 30_000},
        **{"loss_first": 20.1, "loss_last": 3.2, "counted": 50, "waits": 150, "waits_of_log": 4},
        "places": {"ems/model/table.py:48 rows": 150},
    },
    "profile": {"profiles": [PROFILE]},
}


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
