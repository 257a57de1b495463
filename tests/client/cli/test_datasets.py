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
        "id  DIGEST\nname  large.npy\nowner  ada\nformat  .npy\ndtype  float32\nshape  20000\nbytes  80,128\n"
        "uploaded  TIME\nlast used  TIME\n"
    )
    used = shell.run("submit", "--dataset", digest, "--op", "max", "--wait", "--json")
    assert json.loads(used.out)["result"]["value"] == 19999.0
    assert shell.run("dataset", "delete", digest).transcript == f"{digest[:12]} deleted\n"
    assert shell.run("dataset", "show", digest).code == 4
    refused = shell.run("submit", "--dataset", digest)
    assert refused.code == 4
    assert "refused: source.id: there is no dataset with this id" in refused.err


def test_a_table_is_listed_with_its_format_and_size_and_an_id_may_be_shortened(shell: Shell) -> None:
    content = "a,b\n1,2\n"
    (shell.folder / "short.csv").write_text(content)
    digest = hashlib.sha256(content.encode()).hexdigest()
    assert shell.run("dataset", "upload", "short.csv").out == f"{digest}\n"
    row = next(line for line in shell.run("dataset", "list").out.splitlines() if line.startswith(digest[:12]))
    assert row.split()[1:5] == ["short.csv", "ada", "text", str(len(content))]
    assert f"id         {digest}\n" in shell.run("dataset", "show", digest[:12].upper()).out
    assert shell.run("dataset", "rename", digest[:12], "march").err == f"{digest[:12]} is called 'march'\n"
    assert "name       march\n" in shell.run("dataset", "show", digest[:12]).out
    for words in (("show", "none"), ("delete", digest[:12], "none")):
        unknown = shell.run("dataset", *words)
        assert (unknown.code, unknown.err) == (4, "warpfold: none of the latest 1,000 arrays begins with 'none'\n")
    assert shell.run("dataset", "show", "").code == 2
    assert shell.run("dataset", "delete", digest[:12]).err == f"{digest[:12]} deleted\n"
    assert shell.run("dataset", "show", digest).code == 4
