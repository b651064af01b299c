"""Law of a training step, on a GPU that is not there (made/fake_gpu.py): it mixes no devices and,
but for some objectives, waits for nothing that only the GPU knows.
"""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from made.fake_gpu import ALL

WAITS = {  # the operation whose result has a size that depends on values
    "a table": "nonzero",  # of n-grams
    "a table beside layers": "nonzero",
    "XTR of some": "nonzero",
    "distinct": "_unique2",
    "sampled": "nonzero",
    "MLM": "bincount",
}


@pytest.fixture(scope="module")
def outcomes():
    """How the step of each system ended."""
    done = subprocess.run(
        [sys.executable, "tests/made/fake_gpu.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ALL)
def test_a_step_mixes_no_devices_and_waits_for_no_gpu(outcomes, name):
    waits = f"DynamicOutputShapeException: aten.{WAITS.get(name)}.default"
    assert outcomes[name] == (waits if name in WAITS else "ok")


def test_a_tensor_that_stays_on_the_host_is_noticed(outcomes):
    """A guard for the law above."""
    assert "expected to be in the same device" in outcomes["misplaced"]
