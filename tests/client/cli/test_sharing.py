from tests.support.shell import Shell


def test_a_dataset_is_shared_and_made_private_again(shell: Shell) -> None:
    digest = shell.run("dataset", "upload", "large.npy").out.strip()
    assert shell.run("share", "dataset", digest, "--everyone").out == "seen by  you, admins, everyone\n"
    assert shell.run("share", "dataset", digest).out == "seen by  you, admins, everyone\n"
    assert shell.run("unshare", "dataset", digest).out == "seen by  you, admins\n"
    refused = shell.run("share", "dataset", digest, "--with", "nobody-of-this-name")
    assert (refused.code, "users.0: there is no user of this name" in refused.err) == (4, True)
    assert shell.run("share", "job", "00000000-0000-0000-0000-000000000000").code == 4
    assert shell.run("dataset", "delete", digest).code == 0
