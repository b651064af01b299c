"""The commands of `ems`: each is one function, its flags are the parameters (ems.commands.flags).

A function imports what it needs when it runs, so that `ems fetch` does not load PyTorch.
"""

import inspect

from ems.commands import data, models, tables, text, use
from ems.commands.flags import Command

COMMANDS: dict[str, Command] = {
    name.rstrip("_").replace("_", "-"): function
    for module in (data, text, models, tables, use)  # in the order of the workflow
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
}
SECTIONS = {  # of docs/cli.md: the first command of each
    "check": "Check an experiment, list what it downloads, and fetch it",
    "wikipedia": "Clean and segment text and train vocabularies",
    "shards": "Make token shards and look into them",
    "mine-documents": "Train, import, score and compare encoders",
    "export": "Make products of a trained encoder",
    "table": "Make tables and figures",
    "encode": "Use an encoder: encode lines, score and mine pairs, search, serve",
}
