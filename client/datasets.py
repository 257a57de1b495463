"""Conversations about uploaded arrays; `client.uploads` has the uploads themselves."""

from warpfold.client.exchange import Call, Steps, pages, send
from warpfold.client.http import httpx
from warpfold.client.models import Dataset

_PAGE = 200


def dataset(response: httpx.Response) -> Dataset:
    """The dataset that an answer describes."""
    return Dataset.model_validate_json(response.content)


def get(dataset_id: str) -> Steps[Dataset]:
    return send(Call("GET", f"/v1/datasets/{dataset_id}", dataset))


def rename(dataset_id: str, name: str) -> Steps[Dataset]:
    return send(Call("PATCH", f"/v1/datasets/{dataset_id}", dataset, body={"name": name}))


def delete(dataset_id: str) -> Steps[None]:
    return send(Call("DELETE", f"/v1/datasets/{dataset_id}", lambda response: None))


def find(owner: str | None, limit: int) -> Steps[list[Dataset]]:
    """Up to `limit` uploaded arrays, newest first."""
    return pages("/v1/datasets", Dataset, {"owner": owner}, limit=limit, page=_PAGE)
