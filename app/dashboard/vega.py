"""The bundle of Vega, Vega-Lite and Vega-Embed, made once from vl-convert and kept on disk.

`python -m warpfold.app.dashboard.vega` prints it. The api runs that as a process, because making the bundle takes
seconds during which vl-convert lets nothing else in its process run.
"""

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile

from warpfold.app.dashboard.assets import Asset, vega_asset

# Charts are drawn with `ast: true`: Vega then interprets its expressions, and the page's policy forbids `eval`.
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


class VegaBundle:
    """The bundle, kept in `directory` under its version."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._making = asyncio.Lock()
        self._asset: Asset | None = None

    async def asset(self) -> Asset:
        """The script, ready to be served. Raises OSError if it can be neither read nor made."""
        async with self._making:
            if self._asset is None:
                path = self._directory / f"vega-{version('vl-convert-python')}.js"
                if not path.is_file():
                    await self._make(path)
                self._asset = await asyncio.to_thread(lambda: vega_asset(path.read_bytes()))
        return self._asset

    async def _make(self, path: Path) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "warpfold.app.dashboard.vega", stdout=asyncio.subprocess.PIPE
        )
        script, _ = await process.communicate()
        if process.returncode != 0:
            raise OSError(f"the bundle of Vega could not be made: exit code {process.returncode}")
        await asyncio.to_thread(_keep, path, script)


def _keep(path: Path, script: bytes) -> None:
    """Write in one step, so that two processes never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(script)
    Path(file.name).replace(path)


def main() -> None:
    import vl_convert

    sys.stdout.write(vl_convert.javascript_bundle(_SNIPPET))


if __name__ == "__main__":
    main()
