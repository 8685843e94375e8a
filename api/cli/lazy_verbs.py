"""The verbs of `annals` by name. The module of a verb is imported when the verb is called or its own help is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from annals.api.cli.outcome import EXIT_CODES_HELP
from annals.api.cli.text_values import require_text_values


class Verb(NamedTuple):
    """Where a verb or a group of verbs is, as `file:name` in `api/cli/verbs`, and the first sentence of its help."""

    place: str
    summary: str


VERBS: Final = {
    "serve": Verb("serve:serve", "Serve the registry over HTTP until Ctrl-C or SIGTERM."),
    "export": Verb(
        "export:export",
        "Write the registry as one document, the same bytes as GET /export, or with `--stated` GET /export?stated.",
    ),
    "rebuild": Verb(
        "rebuild:rebuild", "Rebuild the read model from the log, and the search index, while the registry is in use."
    ),
    "upgrade": Verb("upgrade:upgrade", "Upgrade the store of an older release, with its history, to this one."),
    "publish": Verb(
        "publish:publish",
        "Publish the log to the topic PREFIX.log and its events to PREFIX.events, until Ctrl-C or SIGTERM.",
    ),
    "config": Verb("config:config", "Print the settings in force, with secrets hidden."),
    "cesql": Verb(
        "cesql:cesql", "Evaluate a CloudEvents SQL expression, and print its value and its first error as JSON."
    ),
    "import": Verb(
        "import_files:import_",
        "Import xRegistry documents into the registry, in the given order; or copy another schema registry.",
    ),
    "log": Verb("log:log", "Read and verify the log, which has every change in order."),
    "subscriptions": Verb("subscriptions:subscriptions", "Manage subscriptions and their deliveries."),
    "replicate": Verb("replicate:replicate", "Copy from and to other registries."),
    "segments": Verb(
        "segments:segments",
        "Maintain the log as Parquet files for bulk readers; docs/guides/segments.md describes the layout.",
    ),
    "spark": Verb(
        "spark:spark",
        "Query the whole log of a registry in SQL. docs/guides/spark/analysts.md describes the tables.",
    ),
    "lake": Verb(
        "lake:lake", "Keep the log as tables that other programs read. docs/guides/lake/README.md describes them."
    ),
    "auth": Verb("auth:auth", "Check credentials by the settings of the server, and sign in to servers."),
    "keys": Verb("keys:keys", "Manage API keys."),
    "grants": Verb("grants:grants", "Give roles to callers."),
    "passwd": Verb(
        "passwd:passwd",
        "Ask twice for a password, and print the entry of a caller for the file of ANNALS_BASIC_FILE.",
    ),
    "secrets": Verb("secrets:secrets", "Manage the encrypted secrets of the registry."),
    "completion": Verb("completion:completion", "Print a script that completes verbs, options and values in a shell."),
}


def lazy_group(verbs: Mapping[str, Verb]) -> type[TyperGroup]:
    """The class of a group whose own help, and the completion of its verbs, need only the table."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = {name: TyperCommand(name, short_help=verb.summary) for name, verb in verbs.items()}

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            """The command that the arguments name, imported. Raises: an error of Typer that suggests similar names."""
            name, _, remaining = super().resolve_command(ctx, args)
            return name, _load(name, verbs[name]) if name else None, remaining

        def load_commands(self) -> dict[str, Any]:
            """All verbs, imported."""
            return {name: _load(name, verb) for name, verb in verbs.items()}

    return LazyGroup


def _load(name: str, verb: Verb) -> Any:
    """The command or the group of a verb, imported."""
    found = resolve_name(f"annals.api.cli.verbs.{verb.place}")
    holder = typer.Typer()
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, epilog=EXIT_CODES_HELP)
    else:
        holder.command(name, epilog=EXIT_CODES_HELP)(found)
    command = typer.main.get_group(holder).commands[name]
    require_text_values(command)
    return command
