"""`annals passwd`: makes the entry of a caller with a password."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from annals.api.cli.outcome import InvalidInput, UsageError

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the caller.")]
RoleOption = Annotated[str, typer.Option("--role", help="Role for the whole registry: reader, writer or admin.")]


def passwd(name: Name, role: RoleOption = "reader") -> None:
    """Ask twice for a password, and print the entry of a caller for the file of ANNALS_BASIC_FILE.

    The file is one JSON object with such entries. The entry has a hash of argon2id instead of the password.

    Example: annals passwd ada --role writer > passwords.json
    """
    from annals.api.auth.caller_entries import parse_caller
    from annals.api.auth.password_hashes import make_hash
    from annals.domain.access.roles import Role

    if role not in (*Role,):
        raise UsageError(f"--role: it is not one of: {', '.join(Role)}.")
    try:
        parse_caller(name, {"role": role})
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    if ":" in name:
        raise UsageError("a name with a colon cannot be sent as Basic; choose another one.")
    password = typer.prompt("Password", hide_input=True, confirmation_prompt="Password again", err=True)
    try:
        entry = {"password": make_hash(str(password)), "role": role}
    except ValueError as error:
        raise InvalidInput(f"{error}.") from None
    typer.echo(json.dumps({name: entry}, ensure_ascii=False, indent=2))
