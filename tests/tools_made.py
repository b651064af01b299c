"""Which segmenters can run here, looked for anew in each test."""

import pytest
from conftest import needs

from ems.errors import EmsError
from ems.segmenters.base import check_available, segmenter


@pytest.fixture(autouse=True)
def _look_for_the_tools_anew():
    check_available.cache_clear()
    yield
    check_available.cache_clear()


def usable(name, language):
    """The segmenter `name`, or a skip where it cannot run."""
    needs(runs(name), f"the segmenter {name} cannot run here")
    return segmenter(name, language)


def runs(name):
    """Whether the segmenter `name` can run here."""
    try:
        check_available(name)
    except EmsError:
        return False
    return True
