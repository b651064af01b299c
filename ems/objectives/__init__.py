"""The training objectives, one file each (EMS v2 section III-B to III-D), and what they share.

To add an objective, write one file here. Its name is the key under `objectives` of an experiment,
whose settings (`weight` among them) are `system.settings["<name>"]` in the loss:

    def loss(system: System, encoded: Encoded) -> Tensor:
        return ...  # a sum over the pairs of the batch

    OBJECTIVE = Objective(loss)  # see ems.objectives.system.Objective
"""
