# The stages as targets: what dvc.yaml calls, and handy by themselves.
for stage, files in w.targets.items():

    rule:
        name:
            stage
        input:
            files,
