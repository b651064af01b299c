"""The settings `train` of a system."""

from typing import Literal

from pydantic import Field

from ems.errors import EmsError
from ems.objectives.settings import Pairs
from ems.settings import Decay, Interval, Name, Rate, Seed, Settings, Steps, number


class TrainSettings(Settings):
    """How a system is trained (EMS v2 section IV-C)."""

    steps: Steps = Field(description="The number of training steps.")
    seed: Seed | None = Field(None, description="The seed (default: that of the experiment).")
    start: Name | None = Field(
        None,
        description="Another system, whose final weights the training starts from. It has the same "
        "vocabulary and sizes; of its heads those with other sizes begin anew.",
    )
    batch_pairs: Pairs = Field(152, description="Sentence pairs of a step, on all GPUs together.")
    learning_rate: Rate = Field(0.0003, description="The learning rate after the warm-up.")
    warmup_steps: Steps = Field(
        10000, description="The learning rate rises linearly over so many steps."
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant",
        description="The learning rate after the warm-up. constant: as the paper; linear: falls "
        "to 0 after the last step; cosine: the authors' code, "
        "0.5 (1 + cos(pi step / schedule_steps)) times the warm-up.",
    )
    schedule_steps: Interval | None = Field(
        None, description="The step at which linear and cosine reach 0 (default: `steps`)."
    )
    amsgrad: bool = Field(
        False, description="Uses the largest second moment so far in Adam, as the authors' code."
    )
    weight_decay: Decay = Field(0.00001, description="The weight decay of Adam.")
    sampling_alpha: number(ge=0, le=10) = Field(
        1,
        description="A language pair is drawn in proportion to its size to this power.",
    )  # at 10 half the size is drawn a thousandth as often
    corpus_share: number(gt=0, le=1) = Field(
        1,
        description="The share of the sentence pairs of each language pair that is used, taken "
        "at even distances (Lightweight, Table 9).",
    )
    input_mask: Literal["none", "one"] = Field(
        "none",
        description="one: the objectives see one token of each pair as <mask>, as in the "
        "authors' code.",
    )
    validate_every: Interval = Field(1000, description="Steps between two validations.")
    checkpoint_every: Interval = Field(1000, description="Steps between two checkpoints.")
    keep_checkpoints: int = Field(
        2,
        ge=1,
        le=1000,
        description="The number of newest checkpoints that stay on disk during the training.",
    )  # each is three times the model; 10 TB hold a thousand of 800M parameters
    average_checkpoints: int = Field(
        0,
        ge=0,
        le=1000,
        description="The model is the mean of the weights of so many last checkpoints; 0: the "
        "weights of the last step.",
    )  # as keep_checkpoints
    grad_cache: int = Field(
        0,
        ge=0,
        le=2097152,
        description="Encodes a step's sentences in so many parts and keeps the activations of "
        "one at a time: large batches on a small GPU, for one more forward pass. 0 is off.",
    )  # a sentence each of the largest batch
    checkpoint_layers: bool = Field(
        False,
        description="Keeps only the input of each layer and runs the layer again for its "
        "gradient, for less memory.",
    )
    compile: bool = Field(
        False,
        description="Compiles the norms, feed-forward layers and dropout of training with "
        "PyTorch's inductor, in a minute: the same up to rounding, with other masks of dropout. "
        "Meant for a GPU; a CPU needs a C++ compiler.",
    )
    threads: int = Field(2, ge=1, le=1024, description="CPU threads of each process.")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="The precision of matrix products; weights, sums and losses stay float32. "
        "bfloat16 is faster on GPUs and on CPUs that have it (avx512_bf16, amx_bf16).",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="Where to train; auto: on a GPU where there is one."
    )
    tensorboard: bool = Field(
        False,
        description="Writes the loss log for TensorBoard too, to "
        "results/EXPERIMENT/logs/tensorboard (needs the package tensorboard). Changes no model.",
    )


class TrainOverrides(TrainSettings):
    """How systems are trained (EMS v2 section IV-C); `steps` may stand in each system instead."""

    steps: Steps | None = Field(None, description="The number of training steps.")


def check_schedule(key: str, train: TrainSettings) -> None:
    """Raise `EmsError` when the learning rate of the system at `key` is 0 before the last step."""
    period, steps = train.schedule_steps, train.steps
    if period and period < steps and train.schedule != "constant":
        raise EmsError(
            f"{key}: train.schedule_steps: {period:,}, after which the learning rate is 0, but "
            f"train.steps is {steps:,}; raise the one or lower the other"
        )
