"""Settings of systems, with the defaults filled in."""

from ems.config import SystemSettings
from ems.model.settings import EncoderSettings
from ems.objectives.settings import Objectives
from ems.train.settings import TrainSettings


def system_settings(model, objectives, train=None):
    """What `System` takes: the three parts of a system, complete."""
    return SystemSettings(
        model=EncoderSettings(**model),
        objectives=Objectives(**objectives),
        train=TrainSettings(**{"steps": 1} | (train or {})),
    )
