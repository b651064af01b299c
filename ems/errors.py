"""The one exception of the library."""


class EmsError(Exception):
    """Something the person at the keyboard can act on.

    The message says what was expected, what was found, where, and what to do. The command line
    prints it without a traceback and exits with status 1.
    """
