"""Placeholders in the options of endpoints and messages, which are URI templates of level 1.

Spec: RFC 6570, section 1.2; message 1.0-rc4, "Metadata Envelopes". Rules CM-12, EP-39.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.unchecked_values import strings
from annals.domain.messaging.templates import template_problems

_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_SYMBOL: Final = re.compile(r"[A-Za-z0-9_]+\Z")
#: The content of braces in a template of any level. Other text in braces, such as JSON, is not a template.
_EXPRESSION: Final = re.compile(r"[+#./;?&=,!@|]?[A-Za-z_][A-Za-z0-9_.%:*\-]*(?:,[A-Za-z_][A-Za-z0-9_.%:*\-]*)*\Z")
_TEMPLATE_ATTRIBUTES: Final = ("envelopemetadata", "protocoloptions")


def placeholders_are_level_1(subject: ValidatedEntity) -> Iterator[Finding]:
    """CM-12: where a string may have placeholders, they are of level 1."""
    for attribute in _TEMPLATE_ATTRIBUTES:
        for path, text in strings(subject.attributes.get(attribute), (attribute,)):
            for expression in _BRACES.findall(text) if "{" in text else ():
                if _EXPRESSION.match(expression):
                    for problem in template_problems(f"{{{expression}}}"):
                        yield subject.must("CM-12", f"the placeholder {problem}", *path)


def blank_placeholders(template: str) -> str:
    """The text with a letter in place of each placeholder, for checks whose result does not depend on the value."""
    return _BRACES.sub("x", template)


def is_placeholder(text: str) -> bool:
    """Whether a text is one placeholder and nothing else."""
    match = _BRACES.fullmatch(text)
    return match is not None and bool(_SYMBOL.match(match[1]))
