"""What `all` makes and from what; the checks before a run; forecast; `ems init`."""
