import hashlib
import json

from tests.support.shell import Shell


def test_an_array_is_uploaded_used_and_deleted(shell: Shell) -> None:
    digest = hashlib.sha256((shell.folder / "large.npy").read_bytes()).hexdigest()
    uploaded = shell.run("dataset", "upload", "large.npy")
    assert uploaded.out == f"{digest}\n"
    assert shell.run("dataset", "upload", "large.npy").out == uploaded.out
    shown = shell.run("dataset", "show", digest).transcript.replace(digest, "DIGEST")
    assert shown == (
        "id  DIGEST\nname  large.npy\nowner  ada\ndtype  float32\nshape  20000\nbytes  80,128\n"
        "uploaded  TIME\nlast used  TIME\n"
    )
    used = shell.run("submit", "--dataset", digest, "--op", "max", "--wait", "--json")
    assert json.loads(used.out)["result"]["value"] == 19999.0
    assert shell.run("dataset", "delete", digest).transcript == f"{digest} deleted\n"
    assert shell.run("dataset", "show", digest).code == 4
    refused = shell.run("submit", "--dataset", digest)
    assert refused.code == 4
    assert "  source.id: there is no dataset with this id" in refused.err
