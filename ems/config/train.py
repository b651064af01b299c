"""The settings `train` of a system."""

from importlib.util import find_spec
from typing import ClassVar, Literal

from ems.base.errors import check, mistake
from ems.base.records import number, whole
from ems.base.schema import Decay, Interval, Name, Rate, Seed, Settings, Steps

Pairs = whole(ge=2, le=1_048_576)  # SigLIP's largest contrastive batch


class TrainSettings(Settings):
    """Training of a system (EMS v2 section IV-C)."""

    LATER: ClassVar = frozenset({"schedule_factor", "keep", "best_by", "table_rate"})
    steps: Steps
    """Number of training steps."""
    seed: Seed | None = None
    """Seed of the training (default: the seed of the experiment)."""
    start_from: Name | None = None
    """Name of a system to initialise from, with its final weights. It needs the same vocabulary and
    sizes; heads of other sizes start anew."""
    batch_pairs: Pairs = 152
    """Number of sentence pairs per step, over all GPUs."""
    learning_rate: Rate = 0.0003
    """Learning rate after the warm-up."""
    table_rate: number(ge=0.001, le=1000) = 1
    """Factor on the learning rate of `model.table` and its n-grams."""
    warmup_steps: Steps = 10000
    """Number of steps over which the learning rate rises linearly from 0."""
    schedule: Literal["constant", "linear", "cosine", "step"] = "constant"
    """Learning rate after the warm-up. `constant`: as in the paper; `linear`: falls to 0 after the
    last step; `cosine`: as in the authors' code, 0.5 (1 + cos(pi step / schedule_steps)) times the
    warm-up; `step`: constant, multiplied by `schedule_factor` from `schedule_steps` on, as in the
    code of Lightweight."""
    schedule_steps: Interval | None = None
    """Step at which `linear` and `cosine` reach 0 (default: `steps`), or `step` lowers the rate."""
    schedule_factor: number(gt=0, le=1) = 0.1
    """Factor of the schedule `step`."""
    amsgrad: bool = False
    """Uses the largest second moment so far in Adam, as in the authors' code."""
    weight_decay: Decay = 0.00001
    """Weight decay of Adam."""
    sampling_alpha: number(ge=0, le=10) = 1  # at 10 half the size is drawn a thousandth as often
    """Sampling exponent: a language pair is drawn in proportion to its size to this power."""
    corpus_share: number(gt=0, le=1) = 1
    """Share of each language pair's pairs to use, taken at even distances (Lightweight Table 9)."""
    input_mask: Literal["none", "one"] = "none"
    """`one`: the objectives see one token of each pair as <mask>, as in the authors' code."""
    validate_every: Interval = 1000
    """Number of steps between validations."""
    checkpoint_every: Interval = 1000
    """Number of steps between checkpoints."""
    keep_checkpoints: whole(ge=1, le=1000) = 2  # a thousand of 800M parameters are 10 TB
    """Number of newest checkpoints that stay on disk during training."""
    average_checkpoints: whole(ge=0, le=1000) = 0  # as keep_checkpoints
    """Number of last checkpoints whose weights are averaged; 0: the weights of the last step."""
    keep: Literal["last", "best"] = "last"
    """Weights of the model. `last`: the weights after the last step; `best`: the weights of the
    best validation after step 0, as in the authors' code (the later one of equals)."""
    best_by: Literal["loss", "p1"] = "loss"
    """Measure of the best validation: lowest total loss, or highest mean P@1 over `validation`."""
    grad_cache: whole(ge=0, le=2097152) = 0  # a sentence each of the largest batch
    """Number of parts in which the sentences of a step are encoded, with the activations of one
    part in memory at a time: large batches on a small GPU, for one more forward pass. 0: off."""
    checkpoint_layers: bool = False
    """Keeps only the input of each layer and runs it again for its gradient, to save memory."""
    compile: bool = False
    """Compiles the norms, feed-forward layers and dropout of training with PyTorch's inductor, in a
    minute. Results are the same up to rounding, with other dropout masks. Meant for a GPU; a CPU
    needs a C++ compiler."""
    threads: whole(ge=1, le=1024) = 2
    """Number of CPU threads per process."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of matrix products; weights, sums and losses stay float32. `bfloat16` is faster on
    GPUs and on CPUs that have it (avx512_bf16, amx_bf16). `float16`, as in the authors' code, needs
    a GPU: for the encoder's products in training, with a scaled loss; a step whose gradients
    overflow is skipped and counted in the log."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device to train on; `auto`: a GPU if there is one."""
    tensorboard: bool = False
    """Also writes the loss log for TensorBoard, to results/EXPERIMENT/logs/tensorboard (needs the
    package tensorboard). Changes no model."""


class TrainOverrides(TrainSettings):
    """Training of the systems (EMS v2 section IV-C); `steps` may also be given for each system."""

    steps: Steps | None = None
    """Number of training steps."""


def check_train(key: str, train: TrainSettings, validated: bool) -> None:
    """Raise `EmsError` if settings contradict each other; `keep: best` needs `validated`."""
    period, best = train.schedule_steps, train.keep == "best"
    mistakes = {
        "step without its start": train.schedule == "step" and not period,
        "rate of 0": period and period < train.steps and train.schedule in ("linear", "cosine"),
        "float16 on a CPU": train.precision == "float16" and train.device == "cpu",
        "best without validation": best and not validated,
        "best of an average": best and train.average_checkpoints,
    }
    check(mistakes, key=key, train=train)


def check_tensorboard() -> None:
    """Raise `EmsError` if the package that `train.tensorboard` needs is not installed."""
    if find_spec("tensorboard") is None:
        raise mistake("no tensorboard")
