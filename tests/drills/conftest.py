import pytest

from tests.support.figures import Figures, wanted


@pytest.fixture
def figures() -> Figures:
    """Takes down how long things took, where the environment asks for it."""
    return wanted()
