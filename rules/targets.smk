# The stages as targets, for dvc.yaml and for use by hand.
for stage, files in w.targets.items():

    rule:
        name:
            stage
        input:
            files,
