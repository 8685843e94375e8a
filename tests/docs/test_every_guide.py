"""Every guide is tested: each block is run by a test, or its language marks it as not run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.support.guides import RUN, blocks_of
from tests.support.serving import ROOT

FOLDER: Final = ROOT / "docs" / "guides"
PAGES: Final = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.md"))
#: The test that runs all blocks of each guide. `followed` and the tests of Spark check that no block is left.
TESTS: Final = {
    **dict.fromkeys(
        (
            *("compare.md", "compat.md", "confluent.md", "formats.md", "history.md", "messages.md", "replication.md"),
            *("pages.md", "search.md", "subscriptions/README.md"),
        ),
        "docs/test_guides.py",
    ),
    **dict.fromkeys(
        (
            *("archive.md", "backup.md", "internet.md", "migrate.md", "move.md", "operation.md", "segments.md"),
            "upgrade.md",
        ),
        "docs/test_operation_guides.py",
    ),
    "publishing.md": "docs/test_broker_guides.py",
    "clients.md": "api/openapi/test_clients.py",
    **dict.fromkeys(
        (f"subscriptions/{name}.md" for name in ("amqp", "http", "kafka", "mqtt", "nats")),
        "docs/test_broker_guides.py",
    ),
    "spark/analysts.md": "spark_projections/analysis/test_plots.py",
    "spark/sources.md": "spark_projections/test_guide.py",
}
#: Languages of blocks that are not run. `console` and `py` are commands and programs that need more than tests have.
SHOWN: Final = {"caddyfile", "console", "haproxy", "json", "nginx", "properties", "py", "sql", "text"}
_INDENTED: Final = re.compile(r"(?:\A|\n)\n    \S.*")
_FENCED: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def text_of(page: str) -> str:
    return FOLDER.joinpath(page).read_text()


def test_each_guide_with_commands_has_a_test() -> None:
    with_commands = {page for page in PAGES if any(block.language in RUN for block in blocks_of(text_of(page)))}
    assert with_commands == set(TESTS)


@pytest.mark.parametrize("page", TESTS)
def test_the_test_follows_the_guide(page: str) -> None:
    source = (ROOT / "tests" / TESTS[page]).read_text()
    assert f'"{page}"' in source or f"guides/{page}" in source or f'"{Path(page).name}"' in source


@pytest.mark.parametrize("page", PAGES)
def test_blocks_say_whether_they_are_run(page: str) -> None:
    text = text_of(page)
    languages = {block.language for block in blocks_of(text)}
    assert languages <= {*RUN, *SHOWN}, "a block without a language, or with one that no test knows"
    assert len(_FENCED.findall(text)) * 2 == len(re.findall(r"^```", text, re.MULTILINE))
    assert _INDENTED.findall(_FENCED.sub("", text)) == [], "write ``` and a language instead of an indented block"


@pytest.mark.parametrize("page", PAGES)
def test_commands_show_what_they_print(page: str) -> None:
    """A block of commands without output starts a registry, or prints nothing."""
    silent = [block.text for block in blocks_of(text_of(page)) if block.language == "sh" and not block.output]
    assert [text for text in silent if not re.search(r"make run|annals serve|curl -s .* -o ", text)] == []
