"""The site can be built from all pages without warnings, and loads nothing from other hosts."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.serving import ROOT

build = pytest.importorskip("mkdocs.commands.build", reason="the extra docs is not installed").build
exceptions = pytest.importorskip("mkdocs.exceptions")
load_config = pytest.importorskip("mkdocs.config").load_config

CONFIG = str(ROOT / "mkdocs.yml")
#: Elements whose URL a browser fetches by itself, with a URL of another host.
_FETCHED = re.compile(
    r'<(?:script|img|iframe)[^>]* src="(https?:)?//|<link[^>]* rel="?(?:stylesheet|preconnect|icon)[^>]*//'
)


@pytest.fixture(autouse=True)
def _without_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")


def test_all_pages_are_built(tmp_path: Path) -> None:
    """A dead link, a missing anchor, or a page outside the navigation would fail the build."""
    build(load_config(CONFIG, site_dir=str(tmp_path)))
    pages = [*tmp_path.rglob("*.html")]
    assert len(pages) > 30
    assert [page.name for page in pages if _FETCHED.search(page.read_text())] == []
    fonts = [
        name for sheet in tmp_path.rglob("*.css") for name in re.findall(r"url\((https?:[^)]*)", sheet.read_text())
    ]
    assert fonts == []


@pytest.mark.parametrize(
    "link", ["[x](other.md)", "[x](#nothing)", "[x](README.md#nothing)", "[x](../nothing.py)", "[x](/absolute)"]
)
def test_a_dead_link_ends_the_build(link: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    docs.joinpath("README.md").write_text(f"# A page\n\n{link}\n")
    with pytest.raises(exceptions.Abort):
        build(load_config(CONFIG, docs_dir=str(docs), site_dir=str(tmp_path / "site"), nav=["README.md"]))


def test_a_link_out_of_the_folder_remains_as_text(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    tmp_path.joinpath("CHANGELOG.md").write_text("")
    docs.joinpath("README.md").write_text("# A page\n\nSee [the changes](../CHANGELOG.md).\n")
    build(load_config(CONFIG, docs_dir=str(docs), site_dir=str(tmp_path / "site"), nav=["README.md"]))
    assert "<p>See the changes.</p>" in tmp_path.joinpath("site", "index.html").read_text()


@pytest.mark.parametrize(
    ("link", "dead"),
    [
        ("docs/README.md", False),
        ("docs/README.md#a-page", False),
        ("#here", False),
        ("docs", False),
        ("https://example.com/nothing", False),
        ("docs/nothing.md", True),
        ("docs/README.md#nothing", True),
        ("#nothing", True),
        ("../", True),
        ("/etc", True),
    ],
)
def test_a_dead_link_of_a_page_at_the_top_ends_the_build(link: str, dead: bool, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    docs.joinpath("README.md").write_text("# A page\n")
    tmp_path.joinpath("README.md").write_text(f"# Here\n\nA link with a [text on two\nlines]({link}).\n")
    config = load_config(CONFIG, docs_dir=str(docs), site_dir=str(tmp_path / "site"), nav=["README.md"])
    with pytest.raises(exceptions.Abort) if dead else nullcontext():
        build(config)


def test_a_link_to_a_missing_heading_outside_of_the_folder_ends_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    tmp_path.joinpath("CHANGELOG.md").write_text("# Changes\n")
    docs.joinpath("README.md").write_text("# A page\n\nSee [the changes](../CHANGELOG.md#changed).\n")
    with pytest.raises(exceptions.Abort):
        build(load_config(CONFIG, docs_dir=str(docs), site_dir=str(tmp_path / "site"), nav=["README.md"]))


def test_the_index_names_every_page() -> None:
    docs = ROOT / "docs"
    named = set(re.findall(r"\]\(([^):#]+\.md)", docs.joinpath("README.md").read_text()))
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    assert pages - named == {"README.md", "tutorials/README.md"}
