"""A job whose array is yet to be fetched from an api shows that as its progress, and can be cancelled meanwhile."""

import hashlib
import io
from pathlib import Path

import numpy as np

from tests.support.dataset_server import dataset_server
from tests.support.fleet import DISPATCHER, WORKER, fleet
from tests.support.ledger import Ledger
from tests.support.waiting import until
from warpfold.app.config import Settings
from warpfold.contract.states import Status


def test_a_cancel_ends_a_download_and_the_next_job_goes_on_with_it(
    settings: Settings, ledger: Ledger, log: Path
) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(100_000.0))
    file = buffer.getvalue()
    dataset_id = hashlib.sha256(file).hexdigest()
    spec = {"kind": "reduce", "op": "sum", "source": {"type": "dataset", "id": dataset_id}}
    token = "a-secret-that-workers-and-apis-share"
    with dataset_server(files={dataset_id: file}, token=token) as server:
        own = {"dataset_urls": (server.url,), "worker_token": token, "heartbeat_s": 0.1, "dispatch_interval_s": 0.1}
        with fleet(settings.model_copy(update=own), log, worker=WORKER, dispatcher=DISPATCHER):
            cancelled = ledger.submit(spec=spec)
            # The server keeps its last byte to itself.
            ledger.until(cancelled, "progress_unit", "bytes fetched")
            ledger.until(cancelled, "progress_total", len(file))
            [partial] = (settings.data_dir / "fetched" / "incoming").glob(dataset_id)
            until(lambda: partial.stat().st_size == len(file) - 1)
            ledger.cancel(cancelled)
            ledger.wait([cancelled], 60)
            assert ledger.job(cancelled).status is Status.CANCELLED
            server.go_on.set()
            again = ledger.submit(spec=spec)
            ledger.wait([again], 60)
    assert ledger.job(again).status is Status.SUCCEEDED, ledger.job(again).error
    assert ledger.result(again)["value"] == 100_000 * 99_999 / 2
    assert server.ranges == [None, f"bytes={len(file) - 1}-"]
    assert token not in log.read_text()
