"""Laws of memory: a model that cannot be trained here is one line before anything is written."""

from types import SimpleNamespace

import psutil
import pytest
import torch
from made.train import MODEL
from safetensors.torch import load_file

from ems.base.errors import EmsError
from ems.train.memory import check_fits

LARGE = {"model": {**MODEL, "width": 32768, "layers": 100, "feed_forward": 131072}}
FLOAT = 4  # bytes


def system(toy, **changes):
    """The settings of a system of the toy experiment."""
    return toy.experiment(**changes).systems["ems"]


def sizes_of(monkeypatch, total):
    """Pretend that this machine has `total` bytes of memory."""
    memory = psutil.virtual_memory()._replace(total=total)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)


def count(never_killed):
    """Parameters of the toy system, as its model files have them."""
    files = [load_file(never_killed / f"{name}.safetensors") for name in ("model", "heads")]
    return sum(value.numel() for tensors in files for value in tensors.values())


def test_a_model_larger_than_the_memory_is_one_line_and_nothing_is_written(toy, tmp_path):
    with pytest.raises(EmsError) as error:
        toy.train(tmp_path / "large", **LARGE)
    message = str(error.value)
    assert "\n" not in message
    assert "systems.ems: 1,2" in message  # parameters, in full
    assert "GB of memory" in message
    for setting in ("model.width", "model.layers", "model.feed_forward", "vocabulary.size"):
        assert setting in message
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize(
    ("train", "copies"),
    [({}, 4), ({"amsgrad": True}, 5), ({"steps": 0}, 1)],
    ids=["Adam", "AMSGrad", "untrained"],
)
def test_weights_gradients_and_moments_must_fit_to_the_byte_and_no_random_number_is_drawn(
    toy, never_killed, monkeypatch, train, copies
):
    needed = copies * FLOAT * count(never_killed)
    arguments = ("ems", system(toy, train=train), 3, 300, torch.device("cpu"))
    sizes_of(monkeypatch, needed)
    before = torch.get_rng_state()
    check_fits(*arguments)
    assert torch.equal(torch.get_rng_state(), before)
    sizes_of(monkeypatch, needed - 1)
    with pytest.raises(EmsError, match=r"systems\.ems: "):
        check_fits(*arguments)


def test_on_a_gpu_its_own_memory_counts(toy, monkeypatch):
    gpu = SimpleNamespace(total_memory=1000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    with pytest.raises(EmsError, match="cuda has"):
        check_fits("ems", system(toy), 3, 300, torch.device("cuda"))
    gpu.total_memory = 10**9
    check_fits("ems", system(toy), 3, 300, torch.device("cuda"))
