"""A private dataset, job and batch of ann, shared with bob, and an upload of hers: what others must not see."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from tests.support.api import THREE_VALUES, Api
from tests.support.artefacts import keep, written
from tests.support.measurements import POINT
from warpfold.app.auth.access_tokens import Role, create_token

RECEIVER = {"url": "https://hooks.example.org/w", "secret": f"whsec_{'MDEy' * 8}"}
SHARED = {"everyone": False, "users": ["bob"]}
ROLES: Mapping[str, str] = {"viewer": "vic", "other user": "cyd", "named user": "bob", "admin": "root", "owner": "ann"}
"""The users of the roles, the one who may least first."""


@dataclass(frozen=True, slots=True)
class PrivateThings:
    """The ids, by the names that routes have for them."""

    dataset_id: str
    job_id: str
    batch_id: str
    upload_id: str

    @classmethod
    def unknown(cls) -> "PrivateThings":
        """Ids that nobody has."""
        return cls(uuid4().hex * 2, str(uuid4()), str(uuid4()), uuid4().hex)


def let_all_in(api: Api) -> None:
    """Give the users of all roles a token."""
    api.tokens["vic"] = api.database.run(create_token, "vic", Role.VIEWER)
    api.tokens["cyd"] = api.database.run(create_token, "cyd", Role.USER)


def npy(values: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def made(api: Api) -> PrivateThings:
    """New things. The job has a stored result, measurements and a webhook."""
    ann = api.client("ann")
    dataset = ann.post("/v1/datasets", content=npy(np.random.default_rng().random(8))).json()["id"]
    upload = ann.post("/v1/uploads", headers={"Upload-Length": "1000"}).json()["id"]
    batch = ann.post("/v1/batches", json={"specs": [dict(THREE_VALUES)], "webhook": RECEIVER}).json()["id"]
    job = api.submit("ann", webhook=RECEIVER)
    lease = api.claim(job)
    keep(api, lease, written(api, lease, [1.5, 2.5]), points=[POINT])
    for path in (f"/v1/datasets/{dataset}", f"/v1/jobs/{job}", f"/v1/batches/{batch}"):
        assert ann.put(f"{path}/sharing", json=SHARED).json() == SHARED
    return PrivateThings(dataset, job, batch, upload)
