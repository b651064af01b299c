"""`python -m ems <stage> ...`, as torchrun starts it: the same as `ems <stage> ...`."""

import sys

from ems.commands.cli import main

sys.exit(main())
