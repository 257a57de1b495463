"""A child that stores results and may be killed meanwhile, without a device."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from tests.support.artefacts import attempt_in
from warpfold.app.jobs.attempt import Lease, Success
from warpfold.contract.folders import Folders
from warpfold.worker.artefacts import ArtefactWriter
from warpfold.worker.messages import Opener, Tell


@dataclass(frozen=True)
class Storing:
    """Stores as many values as the last word after "do" says: {"do": "store 100"}. With "killed-writing" or
    "killed-written" as the first word, its process is killed before or after all of them are on the disk."""

    folders: Folders

    @property
    def device(self) -> Mapping[str, object]:
        return {"backend": "cpu", "name": "storing"}

    def run(self, lease: Lease, tell: Tell) -> Success:
        word, _, count = str(json.loads(lease.spec)["do"]).partition(" ")
        attempt = attempt_in(self.folders, lease.job_id, lease.attempt)
        values = np.arange(int(count), dtype=np.float64)
        with ArtefactWriter(attempt, values.shape, "float64", each=1, field="axis") as writer:
            writer.append(values, np.ones(values.size, np.int64))
            if word == "killed-writing" and lease.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            stored = writer.finish()
        if word == "killed-written" and lease.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return Success({"artefact": stored.artefact.model_dump(mode="json")}, (), stored.note)


def storing(folders: Folders) -> Opener:
    """Opens at once."""
    return partial(Storing, folders)
