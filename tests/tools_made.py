"""Which segmenters can run here, looked for anew in each test."""

import pytest

from ems.errors import EmsError
from ems.segmenters.base import check_available


@pytest.fixture(autouse=True)
def _look_for_the_tools_anew():
    check_available.cache_clear()
    yield
    check_available.cache_clear()


def runs(name):
    """Whether the segmenter `name` can run here."""
    try:
        check_available(name)
    except EmsError:
        return False
    return True
