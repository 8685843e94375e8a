"""The options that `annals import` and `annals export` share when they copy from and to other schema registries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import typer

from annals.api.cli.outcome import UsageError
from annals.domain.confluent.subjects import parse_context
from annals.projections.confluent_copy.selection import SubjectSelection

_PARAMETER: Final = "copy"


class CopyOptions(NamedTuple):
    """Each member is an option of both verbs, see `with_copy_options`.

    user: name for Basic. secret_file: with its password, or with a token. ca: PEM file of authorities.
    """

    context: Annotated[
        str | None, typer.Option("--context", metavar="CONTEXT", help="Only the schemas of a context.")
    ] = None
    subject_prefix: Annotated[
        str,
        typer.Option("--subject-prefix", metavar="TEXT", help="Only subjects whose names begin so; no settings."),
    ] = ""
    into: Annotated[str | None, typer.Option("--into", metavar="CONTEXT", help="The context to copy schemas into.")] = (
        None
    )
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="User name at the other schema registry.")
    ] = None
    secret_file: Annotated[
        Path | None,
        typer.Option("--secret-file", metavar="FILE", help="File with the password of the user, or with a token."),
    ] = None
    ca: Annotated[
        Path | None,
        typer.Option(
            "--ca", metavar="FILE", exists=True, dir_okay=False, help="PEM file with certificate authorities."
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be copied, and record nothing.")] = False
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", dir_okay=False, help="File for a JSON line per version and setting."),
    ] = None

    def given(self) -> list[str]:
        """The options of which the value is another than without them."""
        values = zip(self._fields, self, NO_COPY_OPTIONS, strict=True)
        return [f"--{name.replace('_', '-')}" for name, value, default in values if value != default]

    def selection(self) -> SubjectSelection:
        """Which subjects are copied, and where to. Raises: UsageError."""
        return SubjectSelection(
            _parse_context(self.context, "--context"), self.subject_prefix, _parse_context(self.into, "--into")
        )


#: Those of a call that names none.
NO_COPY_OPTIONS: Final = CopyOptions()


class ImportRequest(NamedTuple):
    """From where and to where `annals import` copies, as the options say.

    url: root of the other registry. topic: with its records, on `brokers`. dump: file of such records. server: URL of
    the registry to copy into; None for the store of the settings.
    """

    url: str | None
    topic: str | None
    dump: Path | None
    brokers: str | None
    server: str | None

    @property
    def sources(self) -> list[object]:
        """The sources that are given: one, if there is anything to copy."""
        return [source for source in (self.url, self.topic, self.dump) if source is not None]


def with_copy_options(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb with the options of `CopyOptions` in place of its parameter `copy`, which receives their values."""
    types = get_type_hints(CopyOptions, include_extras=True)
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=CopyOptions._field_defaults[name],
            annotation=types[name],
        )
        for name in CopyOptions._fields
    ]

    @wraps(verb)
    def wrapped(**values: Any) -> None:
        copy = CopyOptions(**{name: values.pop(name) for name in CopyOptions._fields})
        verb(**values, copy=copy)

    own_types = get_type_hints(verb, include_extras=True)
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own_types[parameter.name])
        for parameter in inspect.signature(verb).parameters.values()
    ]
    parameters = [one for parameter in own for one in (options if parameter.name == _PARAMETER else [parameter])]
    # What `inspect` reads, and with it the library of the command line; the types of functions do not have it.
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del wrapped.__wrapped__
    return wrapped


def refuse_copy_options(copy: CopyOptions, others: Mapping[str, bool], remedy: str) -> None:
    """Checks that a verb which copies nothing has no options of copies: it would do its other work regardless of them.

    others: further options of copies, and whether each is given. Raises: UsageError.
    """
    if given := [*copy.given(), *(option for option, is_given in others.items() if is_given)]:
        raise UsageError(f"{', '.join(given)}: only for copies of schemas; {remedy}.")


def _parse_context(text: str | None, option: str) -> str | None:
    """The context that an option names. Raises: UsageError."""
    if text is None:
        return None
    context = parse_context(text)
    if context is None:
        raise UsageError(f"{option}: {text!r} is no context; its name has no colon.")
    return context
