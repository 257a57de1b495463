from tests.support.api import WORKER, Api
from tests.support.window import Window
from warpfold.app.jobs import workers
from warpfold.app.jobs.workers import WorkerInfo
from warpfold.app.metrics.devices import Reading
from warpfold.app.metrics.monitoring import shares

GPU = WorkerInfo("gpu1:cuda:0", "cuda:0", "cuda", "gpu1", 43, "0.1.0", {"name": "NVIDIA H200"})
READING = Reading(
    utilisation_percent=87,
    memory_used_bytes=64 << 30,
    memory_total_bytes=140 << 30,
    temperature_c=61,
    power_w=512.3,
    power_limit_w=700,
    clock_mhz=1755,
    max_clock_mhz=1980,
    memory_clock_mhz=3201,
)


def test_a_gpus_gauges_are_shown_with_their_units(ann: Window, api: Api) -> None:
    api.database.run(workers.report, GPU, "idle", None, 60.0, reading=READING)
    text = ann.get("/").text
    for figure in ("NVIDIA H200", "87 %", "64 / 140 GiB", "61 °C", "512 W / 700", "1755 MHz", "3201 MHz"):
        assert figure in text, figure


def test_what_a_device_does_not_tell_is_left_out(ann: Window, api: Api) -> None:
    api.database.run(workers.report, GPU, "idle", None, 60.0, reading=Reading(temperature_c=40))
    text = ann.get("/").text
    assert "40 °C" in text
    assert "utilisation" not in text
    assert "power" not in text


def test_the_queue_tells_when_each_owners_next_job_is_to_start(ann: Window, api: Api) -> None:
    api.database.run(workers.report, WORKER, "idle", None, 60.0)
    api.submit("bob")
    text = ann.get("/").text
    assert "Next start" in text
    assert text.count("data-ahead") == 2


def test_a_slot_runs_what_the_jobs_row_says_even_before_the_worker_does(ann: Window, api: Api) -> None:
    api.database.run(workers.report, WORKER, "idle", None, 60.0)
    job = api.submit()
    api.claim(job)
    text = ann.get("/").text
    assert f'id="runs-{job}"' in text
    assert 'class="status running"' in text


def test_a_worker_that_was_not_heard_of_is_lost_and_shows_no_old_gauges(ann: Window, api: Api) -> None:
    api.database.run(workers.report, GPU, "running", None, 0.0, reading=READING)
    text = ann.get("/").text
    assert 'class="status lost"' in text
    assert "87 %" not in text


def test_a_stopped_worker_is_no_slot(ann: Window, api: Api) -> None:
    api.database.run(workers.report, GPU, "stopped", None, 0.0)
    assert GPU.id not in ann.get("/").text


def test_the_queue_is_told_by_owner_and_a_preset_counts_by_its_parts(api: Api) -> None:
    api.submit("ann")
    api.claim(api.submit("ann"))
    api.submit("bob")
    api.client("bob").post("/v1/jobs", json={"kind": "preset", "preset": "p34-reduction"}).raise_for_status()
    by_owner = {
        share.owner: (share.queued, share.running, share.oldest is not None) for share in api.database.run(shares)
    }
    assert by_owner == {"ann": (1, 1, True), "bob": (2, 0, True)}
