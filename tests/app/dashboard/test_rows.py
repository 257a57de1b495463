"""Jobs as rows of the dashboard's tables."""

import re

from tests.support.api import RESULT, Api
from tests.support.window import Window


def test_a_long_path_is_shown_by_its_beginning_and_its_end(ann: Window, api: Api) -> None:
    folders = "a-long-name-of-a-simulation/" * 40
    job = api.submit(source={"type": "path", "path": f"{folders}pressure.npy"})
    line = f"sum of file {folders}"[:100]
    for path in ("/jobs", f"/jobs/{job}"):
        text = ann.get(path).text
        assert f"{line} … " in text, path
        assert "-simulation/pressure.npy" in text


def test_the_list_has_the_value_of_a_job_that_succeeded(ann: Window, api: Api) -> None:
    def values() -> list[str]:
        return re.findall(r'<td class="value figure">(.*?)</td>', ann.get("/jobs").text)

    job = api.submit()
    assert values() == [""]
    api.finish(api.claim(job), result={**RESULT, "value": 0.1, "decimal": "0.1" + 40 * "0"})
    assert values() == [f'<span title="0.1{40 * "0"}">0.10000000000…000000000000</span>']
