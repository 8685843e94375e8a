"""docs/reference/command-line.md: every verb of `annals` with its help, arguments and options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import typer

from annals.api.cli.main import app
from annals.api.cli.outcome import EXIT_CODE_MEANINGS
from docs.generate.markdown import code, escaped, page, table

_PROGRAM: Final = "annals"
_EXAMPLE: Final = re.compile(r"^Example: (annals .*)$", re.DOTALL)

#: A command and its path, such as `annals log tail`. The type is that of Typer's own library for command lines.
Verb = tuple[str, Any]


def text() -> str:
    """The whole page."""
    verbs = [*_verbs(_PROGRAM, typer.main.get_command(app))]
    introduction = (
        "`annals` is the one command, also as `python -m annals`. `annals VERB --help` explains a verb.\n\n"
        "An error is one line on stderr, and the [exit code](#exit-codes) names its kind."
    )
    leaves = [(path, verb) for path, verb in verbs if not _children(verb)]
    contents = table(
        ("Verb", "Does"), ((f"[`{path}`](#{_anchor(path)})", _first_sentence(verb.help)) for path, verb in leaves)
    )
    return page("Command line", introduction, contents, _exit_codes(), *(_entry(path, verb) for path, verb in leaves))


def verb_paths() -> list[str]:
    """Every verb, such as `log tail`."""
    verbs = _verbs(_PROGRAM, typer.main.get_command(app))
    return [path.removeprefix(f"{_PROGRAM} ") for path, verb in verbs if not _children(verb)]


def _exit_codes() -> str:
    rows = ((code(number.value), meaning) for number, meaning in EXIT_CODE_MEANINGS.items())
    return f"## Exit codes\n\n{table(('Code', 'Meaning'), rows)}"


def _verbs(path: str, command: Any) -> Iterator[Verb]:
    yield path, command
    for name, child in _children(command).items():
        if not child.hidden:
            yield from _verbs(f"{path} {name}", child)


def _children(command: Any) -> dict[str, Any]:
    """The commands of a group; a group may load them only when they are called."""
    load = getattr(command, "load_commands", None)
    return load() if load else getattr(command, "commands", {})


def _entry(path: str, verb: Any) -> str:
    choices = _choices_by_name(verb)
    options = [each for each in verb.params if each.param_type_name == "option"]
    arguments = [each for each in verb.params if each.param_type_name == "argument"]
    usage = " ".join((path, "[OPTIONS]", *(_argument_usage(each) for each in arguments)))
    rows = [(_value_name(each), each.help or "") for each in arguments]
    rows += [(_option_usage(each, choices), _meaning(each)) for each in options]
    parts = [f"## {path}", *map(_paragraph, (verb.help or "").split("\n\n")), f"Usage: {code(usage)}"]
    return "\n\n".join((*parts, table(("Option", "Meaning"), ((code(name), meaning) for name, meaning in rows))))


def _choices_by_name(verb: Any) -> dict[str, str]:
    """The values of options that accept only some."""
    hints = get_type_hints(verb.callback)
    return {name: "|".join(map(str, values)) for name, hint in hints.items() if (values := _literals(hint))}


def _literals(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(member.value for member in hint)
    return tuple(value for each in get_args(hint) for value in _literals(each))


def _argument_usage(argument: Any) -> str:
    name = _value_name(argument).removesuffix("...") + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option_usage(option: Any, choices: dict[str, str]) -> str:
    names = ", ".join((*option.opts, *option.secondary_opts))
    return names if option.is_flag else f"{names} {choices.get(option.name) or _value_name(option)}"


def _value_name(parameter: Any) -> str:
    """What stands for a value: the metavar, else the name of an argument, or the longest one of an option."""
    return str(parameter.metavar or max(parameter.opts, key=len).strip("-").upper())


def _meaning(option: Any) -> str:
    default = "" if option.is_flag or option.default in (None, (), []) or callable(option.default) else option.default
    notes = (
        "required" if option.required else "",
        f"default {code(getattr(default, 'value', default))}" if default != "" else "",
        f"environment variable {code(option.envvar)}" if option.envvar else "",
    )
    listed = "; ".join(note for note in notes if note)
    return f"{option.help or ''} ({listed})" if listed else option.help or ""


def _paragraph(words: str) -> str:
    example = _EXAMPLE.match(words)
    return f"Example: {code(' '.join(example[1].split()))}" if example else escaped(words)


def _first_sentence(words: str | None) -> str:
    return re.split(r"(?<=\.)\s", (words or "").strip())[0]


def _anchor(path: str) -> str:
    return path.replace(" ", "-")
