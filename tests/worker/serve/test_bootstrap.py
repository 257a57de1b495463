import os
import stat
from pathlib import Path

from warpfold.app.config import Settings
from warpfold.worker.serve.bootstrap import prepare_data_dir


def test_a_folder_that_others_could_read_is_closed_with_its_logs(tmp_path: Path) -> None:
    root = tmp_path / "data"
    (root / "logs").mkdir(parents=True)
    log = root / "logs" / "api.log"
    log.write_text("of old")
    for path in (root, root / "logs"):
        path.chmod(0o755)
    log.chmod(0o644)
    prepare_data_dir(Settings(data_dir=root, database_url="postgresql://elsewhere/x"))
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (root, root / "logs", root / "locks", log)]
    assert modes == [0o700, 0o700, 0o700, 0o600]


def test_the_user_of_an_embedded_postgres_may_pass_through(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    root.chmod(0o755)
    prepare_data_dir(Settings(data_dir=root, database_url=""))
    assert stat.S_IMODE(root.stat().st_mode) == (0o711 if os.getuid() == 0 else 0o700)
