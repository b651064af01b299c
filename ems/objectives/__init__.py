"""The training objectives, one file each (EMS v2 section III-B to III-D), and what they share.

To add an objective, write one file here. Its name is the key under `objectives` of an experiment,
and its `OBJECTIVE` (`ems.objectives.system.Objective`) says what it computes and what it needs:

    def loss(system: System, encoded: Encoded) -> Tensor:
        return ...  # a sum over the pairs of the batch

    OBJECTIVE = Objective(loss)

The settings of the key, `weight` among them, are declared in schemas/experiment.schema.yaml and
are `system.settings["<name>"]` in the loss.
"""
