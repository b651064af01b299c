"""Run `ems COMMAND ...` as `python -m ems COMMAND ...`, for torchrun."""

import sys

from ems.commands.cli import main

sys.exit(main())
