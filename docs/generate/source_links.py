"""A hook of MkDocs for links that lead out of `docs/`, and for those in the pages at the top, such as README.md.

Code hosts show both, the site does not. A target must exist, with the heading if the link names one. In the site, a
link out of `docs/` leads to the repository if `repo_url` of `mkdocs.yml` names one, otherwise only its text remains.
"""

from __future__ import annotations

import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from markdown import Markdown

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

#: A strict build ends with an error if anything is logged here.
_LOG: Final = logging.getLogger("mkdocs.source_links")
_LINK: Final = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?P<target>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """The page, with its links out of `docs/` as the site needs them."""
    docs = Path(config.docs_dir)
    file = docs / page.file.src_uri

    def rewritten(link: re.Match[str]) -> str:
        target = (file.parent / link["target"]).resolve()
        if target.is_relative_to(docs):
            return link[0]
        _check(file, link["target"] + (link["anchor"] or ""), config)
        return _site_link(link["text"], target.relative_to(docs.parent), config.repo_url)

    return _LINK.sub(rewritten, markdown)


def on_post_build(*, config: MkDocsConfig, **_: Any) -> None:
    """Checks the links of the pages at the top."""
    for file in sorted(Path(config.docs_dir).parent.glob("*.md")):
        for link in _Outline(file, config).links:
            _check(file, link, config)


def _check(file: Path, link: str, config: MkDocsConfig) -> None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    root = Path(config.docs_dir).parent
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not target.exists() or not target.is_relative_to(root):
        _LOG.warning("%s links to %s, which does not exist", file.relative_to(root), link)
    elif parts.fragment and target.suffix == ".md" and parts.fragment not in _Outline(target, config).anchors:
        _LOG.warning("%s links to %s, but the page has no such heading", file.relative_to(root), link)


class _Outline(HTMLParser):
    """The links and the anchors of a page, as the site renders it."""

    def __init__(self, file: Path, config: MkDocsConfig) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        renderer = Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
        self.feed(renderer.convert(file.read_text()))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def _site_link(text: str, path: Path, repository: str | None) -> str:
    return f"[{text}]({repository.rstrip('/')}/blob/main/{path})" if repository else text
