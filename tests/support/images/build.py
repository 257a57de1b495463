"""Both targets of the Dockerfile, built by buildah on a stand-in for their base images."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[3]
PROGRAMS = ("buildah", "debootstrap", "dpkg-deb", "unshare", "setpriv", "ip")
STAND_IN = "localhost/stand-in"
_SUITE = "bookworm"
_PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
# The worker's stage installs these by name, from a distribution that has them.
_ALIASES = {"python3.12": "python3", "python3.12-venv": "python3-venv"}


def missing() -> str | None:
    """Why the images cannot be built here, if they cannot."""
    if os.geteuid() != 0:
        return "building images needs root"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"not installed here: {', '.join(absent)}" if absent else None


@dataclass(frozen=True)
class Builder:
    """buildah with a storage of its own, below `folder`."""

    folder: Path
    driver: str

    def __call__(self, *words: str) -> str:
        """Run a command of buildah's; its output. Raises CalledProcessError."""
        storage = ("--root", f"{self.folder}/storage", "--runroot", f"{self.folder}/run")
        done = subprocess.run(
            ["buildah", *storage, "--storage-driver", self.driver, *words],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def import_base(self, base: Path) -> None:
        """A folder as the image that the named ones are replaced by."""
        container = self("from", "scratch")
        self("add", "--quiet", container, str(base), "/")
        self("config", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", container)
        self("commit", "--quiet", "--rm", "--format", "docker", container, STAND_IN)

    def build(self, target: str) -> None:
        """`docker build --target target`, with the stand-in for every base image."""
        with self._pip() as mounts:
            named = [f"--build-arg={name}={STAND_IN}" for name in ("PYTHON_IMAGE", "CUDA_IMAGE")]
            volumes = [f"--volume={source}:{inside}:ro" for source, inside in mounts.items()]
            tag = f"localhost/warpfold-{target}"
            self(
                *("bud", "--isolation", "chroot", "--format", "docker", "--pull-never", "--quiet"),
                *(*named, *volumes, "--target", target, "--tag", tag, str(ROOT)),
            )

    def mount(self, target: str) -> Path:
        """The files of a built image."""
        return Path(self("mount", self("from", "--pull-never", f"localhost/warpfold-{target}")))

    @contextmanager
    def _pip(self) -> Iterator[dict[Path, str]]:
        """How pip reaches the packages from this machine, as files to be mounted while the steps run. None of it gets
        into an image. Hashes are required, so what is installed is the same wherever it comes from."""
        settings = dict(
            line.split("=", 1)
            for line in subprocess.run(
                [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
            ).stdout.splitlines()
        )
        # A variable goes before a file, and the more special of two files before the other: the last line that says it
        # holds.
        labels = {name.rpartition(".")[2]: value.strip("'") for name, value in settings.items()}
        mounts: dict[Path, str] = {}
        lines = ["[global]"]
        for name in ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout"):
            if value := labels.get(name):
                remote = [word for word in value.split() if urlsplit(word).scheme != "file"]
                lines += [f"{name.removeprefix('default-')} = {' '.join(remote)}"] if remote else []
        if certificates := labels.get("cert"):
            mounts[Path(certificates)] = "/etc/ssl/certs/of-the-host.crt"
            lines.append("cert = /etc/ssl/certs/of-the-host.crt")
        config = self.folder / "pip.conf"
        config.write_text("\n".join(lines) + "\n")
        mounts[config] = "/etc/pip.conf"
        yield mounts


@contextmanager
def builder(folder: Path) -> Iterator[Builder]:
    """A builder whose storage is gone afterwards."""
    made = Builder(folder, "overlay" if _overlays(folder) else "vfs")
    try:
        yield made
    finally:
        made("umount", "--all")
        made("rm", "--all")
        subprocess.run(["umount", "--lazy", "--quiet", f"{folder}/storage/{made.driver}"], check=False)


def make_base(folder: Path) -> None:
    """Debian by debootstrap, from the mirror that this machine uses, with packages of the names that the Dockerfile
    installs."""
    mirror = _mirror()
    words = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, str(folder)]
    subprocess.run([*words, *([mirror] if mirror else [])], check=True, stdout=subprocess.DEVNULL)
    packages = folder / "stand-in"
    packages.mkdir()
    index = []
    for name, real in _ALIASES.items():
        tree = folder.parent / "package"
        (tree / "DEBIAN").mkdir(parents=True)
        control = [f"Package: {name}", "Version: 0", "Architecture: all", "Maintainer: nobody <nobody@localhost>"]
        control += [f"Depends: {real}", f"Description: stands in for {name}"]
        (tree / "DEBIAN" / "control").write_text("\n".join(control) + "\n")
        if "-" not in name:
            (tree / "usr" / "bin").mkdir(parents=True)
            (tree / "usr" / "bin" / name).symlink_to(real)
        file = packages / f"{name}.deb"
        subprocess.run(["dpkg-deb", "--build", str(tree), str(file)], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        about = [f"Filename: ./{file.name}", f"Size: {file.stat().st_size}", f"SHA256: {digest}"]
        index.append("\n".join(control + about) + "\n")
    (packages / "Packages").write_text("\n".join(index))
    (folder / "etc/apt/sources.list.d/stand-in.list").write_text("deb [trusted=yes] file:/stand-in ./\n")
    for archive in (folder / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()


def _mirror() -> str | None:
    """Where this machine's apt takes Debian's packages from."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)"], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        site, _, codename = line.rpartition(" ")
        if codename == _SUITE:
            return site
    return None


def _overlays(folder: Path) -> bool:
    """Whether the kernel stacks folders here: vfs, the other way, copies an image for every container."""
    parts = [folder / "overlay" / name for name in ("lower", "upper", "work", "merged")]
    for part in parts:
        part.mkdir(parents=True)
    lower, upper, work, merged = parts
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    done = subprocess.run(
        ["mount", "-t", "overlay", "-o", options, "overlay", merged], capture_output=True, check=False
    )
    if done.returncode == 0:
        subprocess.run(["umount", merged], check=True)
    shutil.rmtree(folder / "overlay")
    return done.returncode == 0
