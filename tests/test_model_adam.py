"""Our Adam is PyTorch's, step by step and bit by bit, and does not load PyTorch's compiler."""

import subprocess
import sys

import pytest
import torch

from ems.model.devices import Adam

LOADED = """
import sys, torch
from ems.model.devices import Adam
weight = torch.nn.Parameter(torch.ones(3))
first, second = Adam([weight], fused=True), Adam([weight])
scaler = torch.amp.GradScaler("cpu")
for optimizer in (first, second):
    optimizer.zero_grad()
    scaler.scale(weight.square().sum()).backward()
    scaler.unscale_(optimizer)
    optimizer.step()
second.load_state_dict(first.state_dict())
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("settings", [{}, {"fused": True}, {"amsgrad": True, "weight_decay": 0.1}])
def test_it_takes_the_steps_of_pytorchs_and_goes_on_from_its_state(settings):
    ours, theirs = (torch.nn.Linear(5, 3) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    pairs = [(ours, Adam), (theirs, torch.optim.Adam)]
    optimizers = [kind(module.parameters(), lr=0.1, **settings) for module, kind in pairs]
    for step in range(6):
        if step == 3:  # each goes on from where the other one is
            states = [optimizer.state_dict() for optimizer in optimizers]
            optimizers = [kind(module.parameters(), **settings) for module, kind in pairs]
            for optimizer, state in zip(optimizers, reversed(states), strict=True):
                optimizer.load_state_dict(state)
        inputs = torch.randn(7, 5)
        for (module, _), optimizer in zip(pairs, optimizers, strict=True):
            optimizer.zero_grad()
            module(inputs).square().sum().backward()
            optimizer.step()
        assert torch.equal(ours.weight, theirs.weight)
        assert torch.equal(ours.bias, theirs.bias)
    assert not torch.equal(ours.weight, torch.nn.Linear(5, 3).weight)


def test_a_step_and_a_resumed_state_do_not_load_the_compiler():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
