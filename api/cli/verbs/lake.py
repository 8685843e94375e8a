"""`annals lake`: keeps the log as tables that other programs read."""

from __future__ import annotations

import re
from contextlib import nullcontext
from threading import Event
from typing import Annotated, Final, Literal

import typer

from annals.api.cli.options import MAX_COUNT, MAX_SECONDS, bearer_token, load_settings
from annals.api.cli.outcome import UsageError
from annals.api.cli.progress import work_progress
from annals.api.cli.spark_lake import LakePlace, append_lake, optimize_lake, verify_lake
from annals.api.cli.spark_session import LogLocation, parse_location
from annals.api.cli.stop_signals import stop_event

lake: Final = typer.Typer(
    help="Keep the log as tables that other programs read. docs/guides/lake/README.md describes them.\n\n"
    "Settings of Spark come from the environment (ANNALS_SPARK_...) and from .env.",
)

Format = Annotated[Literal["delta", "iceberg", "parquet"], typer.Option("--format", help="Format of the tables.")]
To = Annotated[str, typer.Option("--to", metavar="URI", help="The folder of the tables, one folder each.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="Source of the log: URL of a registry or of its PostgreSQL database, a folder of segments, or `kafka`. "
        "[default: the database of the settings]",
    ),
]
Token = Annotated[str | None, typer.Option(envvar="ANNALS_TOKEN", help="A bearer token for the registry.")]
Brokers = Annotated[str | None, typer.Option("--kafka", metavar="HOST:PORT,...", help="Brokers of --from kafka.")]
Prefix = Annotated[str, typer.Option("--prefix", help="Prefix of the topic name.")]
Tables = Annotated[list[str] | None, typer.Option("--table", metavar="NAME", help="Only this table; may be repeated.")]
Follow = Annotated[bool, typer.Option("--follow", help="Go on while the log grows, until Ctrl-C or SIGTERM.")]
Seconds = Annotated[
    float, typer.Option("--seconds", min=0, max=MAX_SECONDS, help="Seconds between two looks at the log.")
]
Head = Annotated[
    str | None,
    typer.Option("--head", metavar="POSITION:HASH", help="A chain hash stored earlier; the log must contain it."),
]
KeepHours = Annotated[
    float,
    typer.Option(
        "--keep-hours", min=0, max=MAX_COUNT, help="Replaced files stay for these hours, and past positions readable."
    ),
]

_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-fA-F]{64})")


@lake.command()
def append(
    to: To,
    format: Format = "delta",
    source: Source = None,
    token: Token = None,
    brokers: Brokers = None,
    prefix: Prefix = "annals",
    tables: Tables = None,
    follow: Follow = False,
    seconds: Seconds = 10,
) -> None:
    """Bring the tables up to the end of the log; makes those that are missing.

    Each table goes on from its own position, so you can stop or kill the command at any time.

    Example: annals lake append --from http://127.0.0.1:8080 --to s3a://lake/registry --format iceberg
    """
    settings = load_settings()
    location = (
        LogLocation("kafka", brokers=brokers, prefix=prefix)
        if source == "kafka"
        else parse_location(source or settings.database, bearer_token(token, source))
    )
    place = LakePlace(format, to, tuple(tables or ()))
    # Without --follow there is nothing to go on with, so a signal ends the process at once.
    with stop_event() if follow else nullcontext(Event()) as stop, work_progress() as work:
        append_lake(place, location, work.step("computed", "Spark tasks"), stop, seconds if follow else None)


@lake.command()
def verify(to: To, format: Format = "delta", head: Head = None) -> None:
    """Prove that the tables are what the log says: its chain of hashes, the state hash, and each row.

    Prints name, position, number of rows and result of each table. Exit code 3 means that a table differs, or
    that there is none.

    Example: annals lake verify --to s3a://lake/registry --format iceberg
    """
    if head is not None and _HEAD.fullmatch(head) is None:
        raise UsageError("--head is POSITION:HASH, as in 42:9c41…, with a chain hash of 64 hex digits.")
    position, _, chain = (head or "").partition(":")
    load_settings()
    with work_progress() as work:
        expected = (int(position), chain.lower()) if head else None
        verify_lake(LakePlace(format, to), expected, work.step("computed", "Spark tasks"))


@lake.command()
def optimize(to: To, format: Format = "delta", tables: Tables = None, keep_hours: KeepHours = 168) -> None:
    """Merge and sort the files of the tables, and remove those that no reader needs.

    A reader that began more than --keep-hours ago may miss its files.

    Example: annals lake optimize --to s3a://lake/registry --format iceberg --keep-hours 24
    """
    load_settings()
    with work_progress() as work:
        place = LakePlace(format, to, tuple(tables or ()))
        optimize_lake(place, keep_hours, work.step("computed", "Spark tasks"))
