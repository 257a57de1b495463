"""Jobs as rows of the dashboard's tables."""

from tests.support.api import Api
from tests.support.window import Window


def test_a_long_path_is_shown_by_its_beginning_and_its_end(ann: Window, api: Api) -> None:
    folders = "a-long-name-of-a-simulation/" * 40
    job = api.submit(source={"type": "path", "path": f"{folders}pressure.npy"})
    line = f"sum of file {folders}"[:100]
    for path in ("/jobs", f"/jobs/{job}"):
        text = ann.get(path).text
        assert f"{line} … " in text, path
        assert "-simulation/pressure.npy" in text
