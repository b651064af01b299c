"""The settings `train` of a system."""

from importlib.util import find_spec
from typing import ClassVar, Literal

from ems.base.errors import EmsError
from ems.base.schema import Decay, Interval, Name, Rate, Seed, Settings, Steps, number, whole
from ems.config.objectives import Pairs


class TrainSettings(Settings):
    """How a system is trained (EMS v2 section IV-C)."""

    LATER: ClassVar = frozenset({"schedule_factor", "keep", "best_by", "table_rate"})
    steps: Steps
    """The number of training steps."""
    seed: Seed | None = None
    """The seed (default: that of the experiment)."""
    start_from: Name | None = None
    """Another system, whose final weights the training starts from. It has the same vocabulary and
    sizes; of its heads those with other sizes begin anew."""
    batch_pairs: Pairs = 152
    """Sentence pairs of a step, on all GPUs together."""
    learning_rate: Rate = 0.0003
    """The learning rate after the warm-up."""
    table_rate: number(ge=0.001, le=1000) = 1
    """What the learning rate of `model.table` and its n-grams is multiplied by."""
    warmup_steps: Steps = 10000
    """The learning rate rises linearly over so many steps."""
    schedule: Literal["constant", "linear", "cosine", "step"] = "constant"
    """The learning rate after the warm-up. constant: as the paper; linear: falls to 0 after the
    last step; cosine: the authors' code, 0.5 (1 + cos(pi step / schedule_steps)) times the warm-up;
    step: constant, and from `schedule_steps` on `schedule_factor` times that, as the code of
    Lightweight."""
    schedule_steps: Interval | None = None
    """The step at which linear and cosine reach 0 (default: `steps`); the first one with the lower
    rate of step."""
    schedule_factor: number(gt=0, le=1) = 0.1
    """What step multiplies the learning rate by."""
    amsgrad: bool = False
    """Uses the largest second moment so far in Adam, as the authors' code."""
    weight_decay: Decay = 0.00001
    """The weight decay of Adam."""
    sampling_alpha: number(ge=0, le=10) = 1  # at 10 half the size is drawn a thousandth as often
    """A language pair is drawn in proportion to its size to this power."""
    corpus_share: number(gt=0, le=1) = 1
    """The share of the sentence pairs of each language pair that is used, taken at even distances
    (Lightweight, Table 9)."""
    input_mask: Literal["none", "one"] = "none"
    """one: the objectives see one token of each pair as <mask>, as in the authors' code."""
    validate_every: Interval = 1000
    """Steps between two validations."""
    checkpoint_every: Interval = 1000
    """Steps between two checkpoints."""
    keep_checkpoints: whole(ge=1, le=1000) = 2  # a thousand of 800M parameters are 10 TB
    """The number of newest checkpoints that stay on disk during the training."""
    average_checkpoints: whole(ge=0, le=1000) = 0  # as keep_checkpoints
    """The model is the mean of the weights of so many last checkpoints; 0: the weights of the last
    step."""
    keep: Literal["last", "best"] = "last"
    """The weights of the model. last: those of the last step; best: those of the best validation
    after step 0, as the authors' code (of equal ones the later)."""
    best_by: Literal["loss", "p1"] = "loss"
    """The best validation has the lowest total loss, or the highest P@1, the mean of the corpora of
    `validation`."""
    grad_cache: whole(ge=0, le=2097152) = 0  # a sentence each of the largest batch
    """Encodes a step's sentences in so many parts and keeps the activations of one at a time: large
    batches on a small GPU, for one more forward pass. 0 is off."""
    checkpoint_layers: bool = False
    """Keeps only the input of each layer and runs the layer again for its gradient, for less
    memory."""
    compile: bool = False
    """Compiles the norms, feed-forward layers and dropout of training with PyTorch's inductor, in a
    minute: the same up to rounding, with other masks of dropout. Meant for a GPU; a CPU needs a C++
    compiler."""
    threads: whole(ge=1, le=1024) = 2
    """CPU threads of each process."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """The precision of matrix products; weights, sums and losses stay float32. bfloat16 is faster
    on GPUs and on CPUs that have it (avx512_bf16, amx_bf16). float16, as the authors' code, needs a
    GPU: the encoder's products in training, with a scaled loss; a step whose gradients overflow is
    skipped and counted in the log."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto: on a GPU where there is one."""
    tensorboard: bool = False
    """Writes the loss log for TensorBoard too, to results/EXPERIMENT/logs/tensorboard (needs the
    package tensorboard). Changes no model."""


class TrainOverrides(TrainSettings):
    """How systems are trained (EMS v2 section IV-C); `steps` may stand in each system instead."""

    steps: Steps | None = None
    """The number of training steps."""


def check_train(key: str, train: TrainSettings, validated: bool) -> None:
    """Raise `EmsError` for settings that contradict one another. Best weights need validation."""
    period, steps = train.schedule_steps, train.steps
    if train.schedule == "step" and not period:
        raise EmsError(
            f"{key}: train.schedule: step, but train.schedule_steps is not there; say from which "
            "step on the learning rate is lower"
        )
    if period and period < steps and train.schedule in ("linear", "cosine"):
        raise EmsError(
            f"{key}: train.schedule_steps: {period:,}, after which the learning rate is 0, but "
            f"train.steps is {steps:,}; raise the one or lower the other"
        )
    if train.precision == "float16" and train.device == "cpu":
        raise EmsError(
            f"{key}: train.precision: float16 needs a GPU, but train.device is cpu; say float32 or "
            "bfloat16"
        )
    if train.keep == "best" and not validated:
        raise EmsError(f"{key}: train.keep: best compares validations; set `validation`")
    if train.keep == "best" and train.average_checkpoints:
        raise EmsError(
            f"{key}: train.keep: best takes the weights of one step, train.average_checkpoints the "
            f"mean of {train.average_checkpoints}; leave one of them out"
        )


def check_tensorboard() -> None:
    """Raise `EmsError` where `train.tensorboard` cannot be had."""
    if find_spec("tensorboard") is None:
        raise EmsError(
            "train.tensorboard: the package tensorboard is not installed; "
            "`pip install -e .[tensorboard]`, or set train.tensorboard: false"
        )
