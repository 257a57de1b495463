from typing import Any

from warpfold.app.jobs.views import JobView
from warpfold.contract.jobs import job_spec


def test_the_documented_example_is_a_job_with_a_spec_that_is_accepted() -> None:
    example: dict[str, Any] = JobView.model_json_schema()["examples"][0]
    JobView.model_validate(example)
    assert job_spec.validate_python(example["spec"]).model_dump(mode="json", exclude={"webhook"}) == example["spec"]
