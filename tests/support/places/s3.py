"""moto's S3 server in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from warpfold.kernels.places.place import Place

ACCESS = "AKIAOFTHETESTS"
SECRET = "a-secret-that-nobody-may-see"
REGION = "us-east-1"

_SIGNED = {"Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS}/20261122/{REGION}/s3/aws4_request"}
_SERVE = """
from moto.server import ThreadedMotoServer
import sys
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@dataclass
class S3Server:
    port: int
    buckets: set[str] = field(default_factory=set)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def put(self, bucket: str, key: str, content: bytes) -> str:
        """Keep an object; returns its URL."""
        if bucket not in self.buckets:
            httpx.put(f"{self.endpoint}/{bucket}", headers=_SIGNED).raise_for_status()
            self.buckets.add(bucket)
        httpx.put(f"{self.endpoint}/{bucket}/{key}", content=content, headers=_SIGNED).raise_for_status()
        return f"s3://{bucket}/{key}"

    def facts(self, bucket: str, key: str) -> tuple[str, int]:
        """The ETag and the size of an object."""
        answer = httpx.head(f"{self.endpoint}/{bucket}/{key}", headers=_SIGNED).raise_for_status()
        return answer.headers["ETag"], int(answer.headers["Content-Length"])

    def place(self, url: str, **facts: str) -> Place:
        secrets = {"access_key_id": ACCESS, "secret_access_key": SECRET, **facts}
        return Place(url, endpoint=self.endpoint, region=REGION, private=True, secrets=secrets)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield S3Server(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.communicate()
