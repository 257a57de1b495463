import json
import stat

from tests.support.service import Service
from tests.support.shell import Shell
from warpfold.app.auth.access_tokens import create_token
from warpfold.app.db import BlockingDatabase


def test_a_login_is_kept_and_forgotten(service: Service, shell: Shell) -> None:
    bare = Shell(shell.folder)
    done = bare.run("login", service.url, stdin=f"{service.token}\n")
    kept = shell.folder / "warpfold" / "login.json"
    assert done.transcript == f"URL takes you for ada (admin); the token is in {kept}\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(bare.run("whoami", "--json").out) == {
        "url": service.url,
        "origin": str(kept),
        "name": "ada",
        "role": "admin",
    }
    elsewhere = {"WARPFOLD_URL": "http://elsewhere.example", "WARPFOLD_TOKEN": "wf_x"}
    assert Shell(shell.folder, elsewhere).run("logout").transcript == "forgot the token for URL\n"
    assert bare.run("logout").transcript == "warpfold: there is no login\n[exit code 2]\n"
    assert bare.run("whoami").code == 3
    assert bare.run("logout", service.url).code == 2


def test_a_wrong_token_is_not_kept(service: Service, shell: Shell) -> None:
    bare = Shell(shell.folder)
    done = bare.run("login", service.url, stdin="wf_wrong\n")
    assert done.code == 4
    assert "refused: The token is unknown or was revoked." in done.err
    assert not (shell.folder / "warpfold" / "login.json").exists()
    assert bare.run("login", "gpu.example.org").transcript == (
        "warpfold: 'gpu.example.org' is not an address, which begins with http:// or https:// and the name of a host\n"
        "[exit code 3]\n"
    )


def test_a_service_of_this_folder_needs_no_login(service: Service, shell: Shell) -> None:
    notes = shell.folder / ".warpfold"
    notes.mkdir()
    (notes / "url").write_text(f"{service.url}\n")
    (notes / "token").write_text(f"{service.token}\n")
    done = Shell(shell.folder).run("whoami")
    assert done.transcript == f"user  ada\nrole  admin\nservice  URL\nfound in  {notes}\n"


def test_a_token_is_rotated_where_it_is_kept(service: Service, shell: Shell) -> None:
    bare = Shell(shell.folder)
    database = BlockingDatabase(service.settings.database_url, application="test")
    own = database.run(create_token, "rotating")
    database.close()
    bare.run("login", service.url, stdin=f"{own}\n")
    kept = shell.folder / "warpfold" / "login.json"
    done = bare.run("rotate-token")
    assert done.code == 0
    new = json.loads(kept.read_text())["tokens"][service.url]
    assert new != own
    assert new not in done.out
    assert bare.run("whoami").code == 0
    bare.run("logout")
    with_variables = Shell(shell.folder, {"WARPFOLD_URL": service.url, "WARPFOLD_TOKEN": new})
    printed = with_variables.run("rotate-token").out.strip()
    assert printed.startswith("wf_")
    assert with_variables.run("whoami").code == 4


def test_a_dataset_is_shared_and_made_private_again(shell: Shell) -> None:
    digest = shell.run("dataset", "upload", "large.npy").out.strip()
    assert shell.run("share", "dataset", digest, "--everyone").out == "seen by  you, admins, everyone\n"
    assert shell.run("share", "dataset", digest).out == "seen by  you, admins, everyone\n"
    assert shell.run("unshare", "dataset", digest).out == "seen by  you, admins\n"
    refused = shell.run("share", "dataset", digest, "--with", "nobody-of-this-name")
    assert (refused.code, "users.0: there is no user of this name" in refused.err) == (4, True)
    assert shell.run("share", "job", "00000000-0000-0000-0000-000000000000").code == 4
    assert shell.run("dataset", "delete", digest).code == 0
