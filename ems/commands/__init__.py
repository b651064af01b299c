"""The commands of `ems`: one function each, whose parameters are its flags (ems.commands.flags).

A function imports its modules when it runs, so that `ems fetch` does not load PyTorch.
"""

import inspect

from ems.commands import data, models, tables, text, use
from ems.commands.flags import CommandFunction

COMMANDS: dict[str, CommandFunction] = {
    name.rstrip("_").replace("_", "-"): function
    for module in (data, text, models, tables, use)  # in the order of the workflow
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
}
