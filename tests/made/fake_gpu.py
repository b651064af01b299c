"""Training steps on a fake GPU, with shapes but no values; prints how each of them ended.

PyTorch's FakeTensorMode computes shapes, dtypes and devices of every operation, forward and
backward. It raises if an operation mixes devices, and if the size or value of its result is known
only to the GPU, where a host would wait. A process can register the device once, hence a program.
"""

import dataclasses
import json
import sys

import numpy as np
import torch
from made.objectives import SIZES, SYSTEMS, TABLE, batch_of, system_settings
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration

from ems.model.devices import Adam
from ems.model.objectives.system import DeviceBatch, System
from ems.train.step import Guard

DEVICE, PIECES, LANGUAGES, PAIRS = "gpu", 300, 3, 40
PIECES_ALONE, MARGIN = {**TABLE, "ngrams": 0}, SYSTEMS["a table"][1]
MORE = {
    "pieces": ({**PIECES_ALONE, "layers": 0}, MARGIN),
    "pieces and layers": (PIECES_ALONE, {"contrastive": MARGIN["contrastive"]}),  # and XTR
    "XTR of some": ({}, {"xtr": {"share": 0.25}}),
}
ALL = SYSTEMS | MORE


def sentences():
    draw = np.random.default_rng(1)
    for row in range(2 * PAIRS):
        tokens = draw.integers(10, PIECES, draw.integers(1, 13)).tolist()
        yield {"language": row % LANGUAGES, "tokens": tokens, "input": tokens}


def on_gpu(mode, value):
    """Move all tensors in a value to the device, as shapes."""
    if isinstance(value, torch.Tensor):
        return mode.from_tensor(value).to(DEVICE)
    if isinstance(value, list):
        return [on_gpu(mode, part) for part in value]
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        host = {"sizes"}  # stays on the host, as with a GPU
        new = {k: v if k in host else on_gpu(mode, v) for k, v in fields.items()}
        return dataclasses.replace(value, **new)
    return value


def step(model, objectives, misplaced):
    settings = system_settings({**SIZES, "max_tokens": 20, **model}, objectives)
    batch = System(settings, LANGUAGES, PIECES).prepared(batch_of([*sentences()]), 1, 0)
    host = DeviceBatch.copy(batch, torch.device("cpu"))
    packing = host.packing  # of true lengths
    mode = FakeTensorMode()
    with mode:
        with torch.device(DEVICE):
            system = System(settings, LANGUAGES, PIECES).train()
        fake = on_gpu(mode, host)
        fake.packing = on_gpu(mode, packing)
        if misplaced:
            fake.rows = mode.from_tensor(host.rows)
        optimizer = Adam(system.parameters(), lr=0.01, fused=True)
        parts = system(fake)
        parts["total"].backward()
        guard = Guard(torch.device(DEVICE))
        optimizer.found_inf = guard.look(0, parts, system.parameters())
        optimizer.step()
        assert {part.device.type for part in parts.values()} == {DEVICE}
    return "ok"


def outcome(model, objectives, misplaced=False):
    try:
        return step(model, objectives, misplaced)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Backend(backend_registration._DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]


def main():
    backend_registration._setup_privateuseone_for_python_backend(DEVICE, Backend())
    outcomes = {name: outcome(*system) for name, system in ALL.items()}
    outcomes["misplaced"] = outcome(*SYSTEMS["EMS"], misplaced=True)
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
