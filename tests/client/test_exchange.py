"""How answers are read, from the service and from what stands before it."""

import ssl
from typing import Any

import httpx
import pytest

from warpfold.client import catalogue, jobs
from warpfold.client.errors import Refused, Unreachable
from warpfold.client.exchange import Steps, certificates

REQUEST = httpx.Request("GET", "https://elsewhere.example/v1/jobs")


def answered(steps: Steps[Any], response: httpx.Response) -> object:
    """What a conversation makes of the answer to its first request."""
    return next(steps).answer(response)


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, html="<html>Welcome to the printer</html>", request=REQUEST),
        httpx.Response(200, json={"printer": "ready"}, request=REQUEST),
        httpx.Response(200, json=["ready"], request=REQUEST),
    ],
)
def test_another_program_at_the_address_is_found_out(response: httpx.Response) -> None:
    everything = jobs.find({}, limit=1)
    for steps in (catalogue.whoami(), catalogue.workers(), jobs.get("5f0c"), everything):
        with pytest.raises(Unreachable, match=r"elsewhere\.example/v1/jobs answers with .*: is it the address"):
            answered(steps, response)


def test_a_redirect_names_the_address_to_use() -> None:
    headers = {"Location": "https://gpu.example.org/v1/jobs"}
    with pytest.raises(Refused, match=r"308 .* redirects to https://gpu\.example\.org/v1/jobs") as refusal:
        answered(jobs.get("5f0c"), httpx.Response(308, headers=headers, request=REQUEST))
    assert refusal.value.status == 308


def test_certificates_are_loaded_for_a_service_with_tls_alone() -> None:
    assert certificates("https://warpfold.example.org") is True
    none = certificates("http://127.0.0.1:8080")
    assert isinstance(none, ssl.SSLContext)
    assert (none.verify_mode, none.get_ca_certs()) == (ssl.CERT_REQUIRED, [])
