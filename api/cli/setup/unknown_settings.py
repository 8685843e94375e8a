"""A warning for each variable `ANNALS_...` that is no setting, such as a misspelled one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import Final

from annals.api.cli.setup.notices import print_notice
from annals.api.cli.setup.settings_classes import variable_names
from annals.api.settings.settings import ENV_PREFIX
from annals.api.settings.shown_settings import file_values

#: Variables of tests and benchmarks, and those that Kubernetes and Docker set for services named `annals...`.
_OTHER_VARIABLES: Final = re.compile(
    r"ANNALS_(TEST|BENCH)_\w+|ANNALS_SPEC_DATA"
    r"|ANNALS_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)"
)
_SERVICE_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")


@cache
def warn_about_unknown_settings() -> None:
    """Prints the warnings, once per process, for the environment and for `.env`."""
    for name in _unknown_names():
        matches = get_close_matches(name.upper(), list(variable_names()), 1, cutoff=0.8)
        question = f"; did you mean {matches[0]}?" if matches else "; annals config lists all settings."
        print_notice(f"{name} is not a setting{question}")


def _unknown_names() -> Iterator[str]:
    known = frozenset(variable_names())
    for name, value in {**file_values(), **os.environ}.items():
        variable = name.upper()
        if not variable.startswith(ENV_PREFIX) or variable in known or _OTHER_VARIABLES.fullmatch(variable):
            continue
        if not _SERVICE_ADDRESS.match(value or ""):
            yield name
