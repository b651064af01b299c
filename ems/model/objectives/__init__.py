"""The training objectives, one file each (EMS v2 section III-B to III-D), and what they share.

To add an objective, write one file here or in the project's own folder `extensions/objectives/`.
Its name is the key under `objectives` of an experiment, its `Settings` say what may stand there:

    class Settings(Weighted):  # see ems.config.objectives
        power: whole(ge=1, le=9) = 2
        "The power of the distance."

    def loss(system: System, encoded: Encoded) -> Tensor:
        return ...  # a sum over the pairs of the batch, by system.settings.<name>.power

    OBJECTIVE = Objective(loss)  # see ems.model.objectives.system.Objective

The settings of the objectives here stand in ems/config/objectives.py instead: every command reads
them, and PyTorch takes seconds to import.
"""

from pathlib import Path

EXTENSIONS = Path("extensions/objectives")  # below the project's folder
__path__.append(str(EXTENSIONS.absolute()))
