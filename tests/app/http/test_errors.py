from collections.abc import Mapping, Sequence

import httpx
import pytest

from tests.support.api import Api
from warpfold.app.http.error_handlers import dotted
from warpfold.app.http.errors import Problem

NOBODY = "00000000-0000-4000-8000-000000000000"


def problem(response: httpx.Response) -> Problem:
    assert response.headers["Content-Type"] == "application/problem+json"
    refusal = Problem.model_validate_json(response.content)
    assert refusal.status == response.status_code
    assert refusal.type.startswith("urn:warpfold:")
    assert refusal.title
    assert refusal.detail
    return refusal


def test_an_unknown_path_is_a_404_problem(refusing: httpx.Client) -> None:
    assert "/v2/jobs" in problem(refusing.get("/v2/jobs")).detail


@pytest.mark.parametrize("path", ["", "/result", "/events"])
def test_an_unknown_job_is_a_404_problem(refusing: httpx.Client, path: str) -> None:
    response = refusing.get(f"/v1/jobs/{NOBODY}{path}")
    assert response.status_code == 404
    problem(response)


def test_an_unknown_job_cannot_be_cancelled_or_reported(refusing: httpx.Client) -> None:
    assert problem(refusing.post(f"/v1/jobs/{NOBODY}/cancel")).status == 404
    assert problem(refusing.get(f"/v1/reports/{NOBODY}")).status == 404


def test_an_id_that_is_none_is_a_422_problem_that_names_it(refusing: httpx.Client) -> None:
    refusal = problem(refusing.get("/v1/jobs/first"))
    assert (refusal.status, refusal.errors[0].field) == (422, "job_id")


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"axes": 0}, "axes", "There is no such field here; did you mean axis?"),
        ({"colour": 0}, "colour", "There is no such field here"),
        (
            {"source": {"type": "values", "values": [1], "dtpe": "int8"}},
            "source.dtpe",
            "There is no such field here; did you mean dtype?",
        ),
        (
            {"tags": {"größe": "1"}},
            "tags.größe",
            "Should be 1 to 64 letters of the English alphabet, digits",
        ),
        (
            {"source": {"type": "dataset", "id": "12"}},
            "source.id",
            "Should be the id of an uploaded file",
        ),
        (
            {"source": {"type": "path", "path": "a\0b"}},
            "source.path",
            "Should hold a character, and none with",
        ),
    ],
)
def test_a_wrong_text_is_refused_in_words_and_not_by_a_pattern(
    refusing: httpx.Client, change: Mapping[str, object], field: str, message: str
) -> None:
    spec = {"kind": "reduce", "op": "sum", "source": {"type": "values", "values": [1]}}
    (fault,) = problem(refusing.post("/v1/jobs", json={**spec, **change})).errors
    assert fault.field == field
    assert fault.message.startswith(message)


_WRONG = {"type": "generate", "distribution": "normal", "n": 3, "parameters": {"mu": 1}}
_THREE = {"type": "values", "values": [1, 2, 3]}
_DOT = {"kind": "reduce", "op": "dot", "source": _THREE, "other": _WRONG}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"kind": "reduce", "op": "sum", "source": _WRONG}, "source.parameters.mu"),
        (_DOT, "other.parameters.mu"),
        (
            {"kind": "groupby", "by": [{"name": "k", "source": _THREE}], "aggregations": [{"source": _WRONG}]},
            "aggregations.0.source.parameters.mu",
        ),
        (
            {"kind": "groupby", "by": [{"name": "k", "source": _WRONG}], "aggregations": [{"source": _THREE}]},
            "by.0.source.parameters.mu",
        ),
        (
            {"kind": "preset", "preset": "p05-three-numbers", "children": [{"name": "dot", "spec": _DOT}]},
            "children.0.spec.other.parameters.mu",
        ),
    ],
)
def test_a_fault_of_a_source_is_named_where_the_source_stands(
    refusing: httpx.Client, spec: Mapping[str, object], field: str
) -> None:
    (fault,) = problem(refusing.post("/v1/jobs", json=spec)).errors
    assert (fault.field, fault.message) == (field, "normal has no parameter 'mu'; known: mean, std")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/jobs", "GET, HEAD, OPTIONS, POST"),
        ("DELETE", f"/v1/jobs/{NOBODY}/events", "GET, HEAD, OPTIONS"),
        ("GET", "/v1/states/merge", "OPTIONS, POST"),
        ("POST", "/results", "GET, HEAD, OPTIONS"),
    ],
)
def test_a_wrong_method_is_a_405_problem_with_all_that_are_allowed(
    refusing: httpx.Client, method: str, path: str, allowed: str
) -> None:
    response = refusing.request(method, path)
    assert problem(response).status == 405
    assert response.headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1000", "limit"),
        ("limit=many", "limit"),
        ("status=lost", "status"),
        ("cursor=zz", "cursor"),
        ("cursor=am9iczotMQ", "cursor"),
        ("tag=%00", "tag.0"),
        ("tag=:x", "tag"),
        ("owner=%00", "owner"),
        ("kind=reductions", "kind"),
        ("parent=x", "parent"),
        ("satus=failed", "satus"),
        ("wait=30", "wait"),
    ],
)
def test_a_bad_query_is_a_422_problem_that_names_the_parameter(refusing: httpx.Client, query: str, field: str) -> None:
    refusal = problem(refusing.get(f"/v1/jobs?{query}"))
    assert (refusal.status, [error.field for error in refusal.errors]) == (422, [field])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/results?strategi=exact", "known: kind, op, dtype, strategy,"),
        ("/v1/workers?slot=cpu", "known: none"),
        (f"/v1/jobs/{NOBODY}?wait=30", "known: none"),
    ],
)
def test_a_parameter_that_the_path_does_not_have_is_refused_with_those_it_has(
    refusing: httpx.Client, path: str, words: str
) -> None:
    refusal = problem(refusing.get(path))
    assert refusal.status == 422
    assert words in refusal.detail


def test_who_has_no_token_is_not_told_of_parameters(api: Api) -> None:
    assert problem(httpx.get(f"{api.url}/v1/jobs?satus=failed")).status == 401


def test_a_fault_of_ours_is_a_500_problem_that_tells_nothing_of_our_insides(own_api: Api) -> None:
    with own_api.database._engine.begin() as connection:
        connection.exec_driver_sql("alter table jobs rename column seq to fault")
    response = own_api.client().get("/v1/jobs")
    assert response.status_code == 500
    assert "fault" not in response.text
    assert "select" not in response.text.lower()
    assert response.headers["Connection"] == "close"
    problem(response)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        (("source", "values", "values", 3), "source.values.3"),
        (("source", "path", "path"), "source.path"),
        (("source",), "source"),
        (("tags", "a b", "[key]"), "tags.a b"),
        (("path",), "path"),
        ((), ""),
    ],
)
def test_a_location_is_dotted_and_without_the_tags_of_unions(location: Sequence[str | int], name: str) -> None:
    assert dotted(location) == name
