"""The one exception of the library."""

FAILED, REQUEUE = 1, 75  # exit statuses; 75 is EX_TEMPFAIL of sysexits.h: the same command goes on


class EmsError(Exception):
    """An error that the person at the keyboard can act on.

    The message says what was expected, what was found, where, and what to do. The command line
    prints it without a traceback and exits with `status`: 1, or 75 for work that was stopped from
    outside, is saved, and goes on when the same command runs again.
    """

    def __init__(self, message: object = "", status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status

    @property
    def finding(self) -> str:
        """What is wrong, without advice that depends on the place of a file."""
        return str(self)
