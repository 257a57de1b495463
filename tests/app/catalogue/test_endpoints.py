from dataclasses import replace

import httpx

from tests.support.api import RESULT, WORKER, Api
from tests.support.rates import CPU
from warpfold.app.jobs import workers
from warpfold.contract.provenance import DeviceView
from warpfold.kernels.catalog import strategies
from warpfold.kernels.dtypes import DTYPES
from warpfold.kernels.generate import DISTRIBUTIONS
from warpfold.kernels.ops import OPS

DEVICE = DeviceView.model_validate(RESULT["device"]).model_dump(mode="json")


def test_every_op_is_there_with_the_dtype_of_its_value(refusing: httpx.Client) -> None:
    ops = {op["name"]: op for op in refusing.get("/v1/ops").json()["ops"]}
    assert set(ops) == set(OPS)
    assert ops["sum"]["results"]["int8"] == "integer"
    assert ops["mean"]["results"]["int8"] == "float64"
    assert (ops["sum"]["empty"], ops["any"]["empty"], ops["mean"]["empty"]) == (0, False, None)
    assert (ops["norm2"]["terms"], ops["max"]["terms"]) == ("products", "none")


def test_every_dtype_and_distribution_is_there_with_its_parameters(refusing: httpx.Client) -> None:
    catalogue = refusing.get("/v1/ops").json()
    assert {dtype["name"]: dtype["bytes"] for dtype in catalogue["dtypes"]} == {
        name: dtype.itemsize for name, dtype in DTYPES.items()
    }
    defaults = {
        row["name"]: {parameter["name"]: parameter["default"] for parameter in row["parameters"]}
        for row in catalogue["distributions"]
    }
    assert set(defaults) == set(DISTRIBUTIONS)
    assert defaults["normal"] == {"mean": 0.0, "std": 1.0}
    assert catalogue["nan_policies"] == ["propagate", "omit", "raise"]


def test_every_strategy_is_there_with_what_it_computes(refusing: httpx.Client) -> None:
    items = refusing.get("/v1/strategies").json()["items"]
    assert {(row["name"], row["backend"]) for row in items} == {(row.name, row.backend) for row in strategies()}
    [exact] = [row for row in items if (row["name"], row["backend"]) == ("exact", "cpu")]
    assert "float32" in exact["computes"]["sum"]
    assert exact["error_bound"]


def test_without_workers_there_are_no_workers_and_no_devices(refusing: httpx.Client) -> None:
    assert refusing.get("/v1/workers").json() == {"items": []}
    assert refusing.get("/v1/devices").json() == {"items": []}


def test_a_worker_is_shown_with_what_it_does(api: Api, http: httpx.Client) -> None:
    job_id = api.submit()
    lease = api.claim(job_id)
    api.database.run(workers.report, replace(WORKER, device=DEVICE), "running", lease.job_id, 60.0)
    [worker] = http.get("/v1/workers").json()["items"]
    assert (worker["id"], worker["state"], worker["job_id"], worker["device"]) == (
        "gpu1:cpu",
        "running",
        job_id,
        DEVICE["name"],
    )


def test_a_worker_that_fell_silent_is_lost_and_one_that_said_goodbye_is_stopped(api: Api, http: httpx.Client) -> None:
    api.database.run(workers.report, WORKER, "idle", None, -1.0)
    api.database.run(workers.report, replace(WORKER, id="gpu1:cuda:0", slot="cuda:0"), "stopped", None, -1.0)
    states = {worker["id"]: worker["state"] for worker in http.get("/v1/workers").json()["items"]}
    assert states == {"gpu1:cpu": "lost", "gpu1:cuda:0": "stopped"}


def test_a_device_is_shown_once_with_the_workers_that_hold_it(api: Api, http: httpx.Client) -> None:
    gpu = {**DEVICE, "backend": "cuda", "name": "NVIDIA H200", "uuid": "GPU-1", "compute_capability": "9.0"}
    for name, device, lease_s in (("cpu", DEVICE, 60.0), ("cuda:0", gpu, -1.0), ("gang", gpu, 60.0)):
        worker = replace(WORKER, id=f"gpu1:{name}", slot=name, device=device)
        api.database.run(workers.report, worker, "idle", None, lease_s)
    items = http.get("/v1/devices").json()["items"]
    assert [(device["device"]["name"], device["workers"], device["live"]) for device in items] == [
        (DEVICE["name"], ["gpu1:cpu"], True),
        ("NVIDIA H200", ["gpu1:cuda:0", "gpu1:gang"], True),
    ]


def test_devices_and_workers_tell_how_fast_they_are(api: Api, http: httpx.Client) -> None:
    for name, rates in (("cpu", CPU.model_dump()), ("cuda:0", {"speed": 1})):
        worker = replace(WORKER, id=f"gpu1:{name}", slot=name, device={**DEVICE, "name": name}, rates=rates)
        api.database.run(workers.report, worker, "idle", None, 60.0)
    assert [device["rates"] for device in http.get("/v1/devices").json()["items"]] == [CPU.model_dump()]
    assert [worker["rates"] for worker in http.get("/v1/workers").json()["items"]] == [CPU.model_dump(), None]


def test_a_worker_of_another_version_does_not_break_the_list(api: Api, http: httpx.Client) -> None:
    api.database.run(workers.report, replace(WORKER, device={"brand": "?"}), "idle", None, 60.0)
    assert http.get("/v1/devices").json() == {"items": []}
    assert http.get("/v1/workers").json()["items"][0]["device"] is None
