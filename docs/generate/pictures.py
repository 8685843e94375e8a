"""Takes the pictures of pages in the documentation: `python -m docs.generate.pictures`.

It needs Chromium and the packages of the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.browser import chromium, walking
from tests.support.registries.sample import fill
from tests.support.serving import serving

FOLDER: Final = Path(__file__).resolve().parents[1] / "pictures"
_READING: Final = "schemagroups/sensors/schemas/reading"
#: Paths below `/ui/` by the name of the picture.
PAGES: Final[Mapping[str, str]] = {
    "overview": "",
    "schema": f"explore/{_READING}",
    "edit": f"edit/{_READING}",
    "compare": f"compare/{_READING}?left=1&right=3&view=meaning",
    "timeline": "timeline",
}
#: Schemas beside those of the sample.
_SCHEMAS: Final = 1000
_WINDOW: Final = {"width": 1280, "height": 800}


def main(folder: Path = FOLDER) -> None:
    """Writes one picture of each page to a folder."""
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory() as home, serving(f"sqlite:///{home}/annals.db", Path(home)) as served:
        fill(served.url, _SCHEMAS)
        with chromium() as browser, walking(browser, served.url, viewport=_WINDOW, color_scheme="light") as walk:
            for name, path in PAGES.items():
                walk.go(f"/ui/{path}").screenshot(path=str(folder / f"{name}.png"))


if __name__ == "__main__":
    main()
