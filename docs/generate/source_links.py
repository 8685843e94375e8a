"""A hook of MkDocs for links to files outside of `docs/`, which lead there on a code host but have no page in the site.

Such a file must exist. In the site the link leads to the repository if `repo_url` of `mkdocs.yml` names one, otherwise
only its text remains.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

#: A strict build ends with an error if anything is logged here.
_LOG: Final = logging.getLogger("mkdocs.source_links")
_LINK: Final = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?P<target>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """The page, with its links out of `docs/` as the site needs them."""
    docs = Path(config.docs_dir)
    folder = (docs / page.file.src_uri).parent

    def rewritten(link: re.Match[str]) -> str:
        target = (folder / link["target"]).resolve()
        if target.is_relative_to(docs):
            return link[0]
        if not target.exists():
            _LOG.warning("%s links to %s, which does not exist", page.file.src_uri, link["target"])
        return _site_link(link["text"], target.relative_to(docs.parent), config.repo_url)

    return _LINK.sub(rewritten, markdown)


def _site_link(text: str, path: Path, repository: str | None) -> str:
    return f"[{text}]({repository.rstrip('/')}/blob/main/{path})" if repository else text
