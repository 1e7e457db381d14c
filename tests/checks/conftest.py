"""What all tests of the checks have in common."""

import pytest

from minigpt.course.checks import running


@pytest.fixture(scope="session", autouse=True)
def the_engines_own_slips_are_raised():
    running.STRICT = True
