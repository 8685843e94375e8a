"""Every error type of the specifications as one exception class each.

A problem is raised where its rule is known, `raise MismatchedEpoch(xid, bad_epoch=9, epoch=3)`, and becomes an HTTP
response in one place (`api/http/problem_response.py`). The classes below are the catalogue; the placeholders in a
title are the arguments of its class.
Spec: core 1.0-rc4, "Error Processing"; HTTP binding 1.0-rc4, "Error Processing".
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from annals.domain.values.json_text import dumps

SPEC: Final = "https://github.com/xregistry/spec/blob/main/core/spec.md"
HTTP: Final = "https://github.com/xregistry/spec/blob/main/core/http.md"

#: Subjects that are not an entity: the path or URL of the request (filled in by the HTTP layer), or none at all.
REQUEST_PATH: Final = "<request_path>"
REQUEST_URL: Final = "<request_url>"
NO_SUBJECT: Final = ""

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_PLACEHOLDER: Final = re.compile(r"<([a-z][a-z0-9_]*)>")


class Problem(Exception):
    """One refused request: what is wrong, the subject, and the text of the error.

    subject: an xid, or None if the type defines that it is the request (or nothing).
    detail: free text for people. extensions: additional members of the response, JSON values.
    arguments: exactly the placeholders of the title; stored as strings, as responses show them.
    """

    name: ClassVar[str]
    status: ClassVar[int] = 400
    title: ClassVar[str]
    document: ClassVar[str] = SPEC
    fixed_subject: ClassVar[str | None] = None  # a fixed subject, or one of the three above; None: given when raised

    def __init_subclass__(cls, **members: int | str | None) -> None:
        """Names the type after its class.

        members: `status`, `fixed_subject` and `document`, where they are not the base's.
        """
        cls.name = _CAPITAL.sub("_", cls.__name__).lower()
        for name, value in members.items():
            setattr(cls, name, value)

    def __init__(
        self,
        subject: str | None = None,
        /,
        *,
        detail: str | None = None,
        extensions: dict[str, object] | None = None,
        **arguments: object,
    ) -> None:
        placeholders = self.placeholders()
        if set(arguments) != placeholders:
            raise TypeError(f"{self.name} takes {sorted(placeholders)}, not {sorted(arguments)}")
        if (subject is None) != (self.fixed_subject is not None):
            raise TypeError(
                f"{self.name}: a subject is {'given by the type' if self.fixed_subject is not None else 'missing'}"
            )
        self.subject = subject if subject is not None else self.fixed_subject
        self.arguments = {key: _argument_text(value) for key, value in arguments.items()}
        self.detail = detail
        self.extensions = extensions or {}
        super().__init__(self.text())

    @classmethod
    def placeholders(cls) -> set[str]:
        """Names of the arguments of this type."""
        return set(_PLACEHOLDER.findall(cls.title)) - {"subject"}

    @classmethod
    def uri(cls) -> str:
        """The `type` member of a response."""
        return f"{cls.document}#{cls.name}"

    def text(self, subject: str | None = None) -> str:
        """The title with its placeholders filled in. subject: of a problem that is about the request's path or URL."""
        is_about_request = self.subject in (None, REQUEST_PATH, REQUEST_URL)
        values = {"subject": (is_about_request and subject) or self.subject or "", **self.arguments}
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.title)


def _argument_text(value: object) -> str:
    """Strings unchanged, other values as JSON."""
    return dumps(value).decode() if isinstance(value, (bool, float, list, dict)) else str(value)


class ActionNotSupported(Problem, status=405, fixed_subject=REQUEST_PATH):
    title = "The specified action (<action>) is not supported for: <subject>."


class AncestorCircularReference(Problem):
    title = 'For "<subject>", the request would create a circular list of ancestors: <list>.'


class BadDefaultversionid(Problem, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", an error was found in the "defaultversionid" value specified (<value>): <error_detail>.'


class BadDetails(Problem, fixed_subject=REQUEST_PATH):
    title = 'Use of "$details" in this context is not allowed: <subject>.'


class BadFilter(Problem, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", an error was found in "filter" value (<value>): <error_detail>.'


class BadFlag(Problem, fixed_subject=REQUEST_PATH):
    title = "The specified flag (<flag>) is not allowed in this context: <subject>."


class BadIgnore(Problem, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", an error was found in "ignore" value (<value>): <error_detail>.'


class BadInline(Problem, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", an error was found in "inline" value (<value>): <error_detail>.'


class BadRequest(Problem, fixed_subject=REQUEST_PATH):
    title = "<error_detail>."


class BadSort(Problem, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", an error was found in "sort" value (<value>): <error_detail>.'


class CannotDocXref(Problem):
    title = 'Retrieving the document view of a Version for "<subject>" is not allowed because it uses "xref".'


class CapabilityError(Problem, fixed_subject="/capabilities"):
    title = "There was an error in the capabilities provided: <error_detail>."


class CapabilityMissingValue(Problem, fixed_subject="/capabilities"):
    title = 'The "<name>" capability needs to contain "<value>".'


class CapabilityUnknown(Problem, fixed_subject="/capabilities"):
    title = "Unknown capability specified: <field>."


class CapabilityValue(Problem, fixed_subject="/capabilities"):
    title = 'Invalid value (<value>) specified for capability "<field>". Allowable values include: <list>.'


class CapabilityWildcard(Problem, fixed_subject="/capabilities"):
    title = 'When "<field>" includes a value of "*" then no other values are allowed.'


class CompatibilityUnknown(Problem):
    title = 'The compatibility value (<compat>) on Resource "<subject>" is not supported for format "<format>".'


class CompatibilityViolation(Problem):
    title = 'The request would cause one or more Versions of "<subject>" to violate its compatibility rule (<compat>).'


class ConstraintFailure(Problem):
    title = 'The request would result in one or more Versions of "<subject>" not being compliant with its owning Group\'s "<kind>" constraint for attribute "<path>".'


class DataRetrievalError(Problem, status=500):
    title = "The server was unable to retrieve all of the requested data."


class DefaultversionidRequest(Problem):
    title = 'Processing "<subject>", the "defaultversionid" attribute is not allowed to be "request" since a Version wasn\'t processed.'


class ExtraXrefAttribute(Problem):
    title = 'Attribute "<name>" is not allowed to be present since the "<singular>" (<subject>) uses "xref".'


class FormatExternal(Problem):
    title = 'Version "<subject>" references a document stored outside of the Registry, therefore no validation was performed.'


class FormatUnknown(Problem):
    title = 'Version "<subject>" has a "format" value (<format>) that it not supported.'


class FormatViolation(Problem):
    title = 'The request would cause Version "<subject>" to be non-compliant with its "format" (<format>).'


class GroupsOnly(Problem, fixed_subject=REQUEST_PATH):
    title = 'Attribute "<name>" is invalid. Only Group types are allowed to be specified on this request: <subject>.'


class HasdocumentViolation(Problem):
    title = 'The request would cause Version "<subject>" to be non-compliant. The model definition of "<plural>" has "hasdocument" set to "false" but this Version has document content.'


class InlineNoninlineable(Problem, fixed_subject=REQUEST_PATH):
    title = "Attempting to inline a non-inlineable attribute (<name>) on: <subject>."


class InvalidAttribute(Problem):
    title = 'The attribute "<name>" for "<subject>" is not valid: <error_detail>.'


class MalformedId(Problem, fixed_subject=REQUEST_URL):
    title = 'For "<subject>", the specified ID value (<id>) is malformed: <error_detail>.'


class MalformedXid(Problem, fixed_subject=REQUEST_URL):
    title = 'For "<subject>", the specified XID value (<xid>) is malformed: <error_detail>.'


class MalformedXref(Problem, fixed_subject=REQUEST_URL):
    title = 'For "<subject>", the specified xref value (<xref>) is malformed: <error_detail>.'


class MismatchedEpoch(Problem):
    title = 'The specified epoch value (<bad_epoch>) for "<subject>" does not match its current value (<epoch>).'


class MismatchedId(Problem):
    title = 'The specified "<singular>id" value (<invalid_id>) for "<subject>" needs to be "<expected_id>".'


class MismatchedVersionAttribute(Problem):
    title = 'The request would cause the "<name>" attribute across the Versions of "<subject>" to be different.'


class MisplacedEpoch(Problem):
    title = 'The specified "epoch" value for "<subject>" needs to be within a "meta" entity.'


class ModelComplianceError(Problem, fixed_subject="/model"):
    title = "The model provided would cause one or more entities in the Registry to become non-compliant."


class ModelError(Problem, fixed_subject="/model"):
    title = "There was an error in the model definition provided: <error_detail>."


class ModelRequiredTrue(Problem, fixed_subject="/model"):
    title = 'Model attribute "<name>" needs to have a "required" value of "true" since a default value is provided.'


class ModelScalarDefault(Problem, fixed_subject="/model"):
    title = 'Model attribute "<name>" is not allowed to have a default value since it is not a scalar.'


class MultipleRoots(Problem):
    title = 'The operation would result in multiple root Versions for "<subject>", which is not allowed for "<plural>".'


class NotAvailable(Problem):
    title = "The requested data (<subject>) is not available."


class NotFound(Problem, status=404):
    title = "The targeted entity (<subject>) cannot be found."


class OneResource(Problem):
    title = 'Only one attribute from "<list>" can be present at a time for: <subject>.'


class ParsingData(Problem, fixed_subject=NO_SUBJECT):
    title = "There was an error parsing the data: <error_detail>."


class Readonly(Problem):
    title = "Updating a read-only entity (<subject>) is not allowed."


class RequiredAttributeMissing(Problem):
    title = 'One or more mandatory attributes for "<subject>" are missing: <list>.'


class ResourcesOnly(Problem):
    title = 'Attribute "<name>" is invalid. Only Resource types are allowed to be specified on this request: <subject>.'


class ServerBusy(Problem, status=503, fixed_subject=REQUEST_PATH):
    title = 'Due to excessive requests, the server could not complete "<subject>", please try again later.'


class ServerError(Problem, status=500, fixed_subject=REQUEST_PATH):
    title = "An unexpected error occurred, please try again later."


class SetdefaultversionstickyFalse(Problem):
    title = 'For "<subject>", setting "defaultversionsticky" to "true" is not allowed since "maxversions" is "1".'


class SortNoncollection(Problem, fixed_subject=REQUEST_PATH):
    title = "Can't sort on a non-collection result set. Query path: <subject>."


class TooLarge(Problem, status=406, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", the size of the response is too large to return in a single response.'


class TooManyVersions(Problem, fixed_subject=REQUEST_PATH):
    title = 'For "<subject>", when the "setdefaultversionid" flag is set to "request", only one Version is allowed to be specified in the request message.'


class UnknownAttribute(Problem):
    title = 'An unknown attribute (<name>) was specified for "<subject>".'


class UnknownGroupType(Problem):
    title = 'An unknown Group type (<name>) was specified in "<subject>".'


class UnknownId(Problem):
    title = 'While processing "<subject>", the "<singular>" with a "<singular>id" value of "<id>" cannot be found.'


class UnknownResourceType(Problem):
    title = 'An unknown Resource type (<name>) was specified for Group type "<group>".'


class UnsupportedSpecversion(Problem, fixed_subject=REQUEST_PATH):
    title = 'The specified "specversion" value (<specversion>) is not supported. Supported versions: <list>.'


class VersionidNotAllowed(Problem):
    title = 'While creating a new Version for "<subject>", a "versionid" was specified but the "setversionid" model aspect for entities of type "<plural>" is "false".'


class ApiNotFound(Problem, status=404, fixed_subject=REQUEST_PATH, document=HTTP):
    title = "The specified API is not supported: <subject>."


class DetailsRequired(Problem, status=405, document=HTTP):
    title = "$details suffix is needed when using PATCH for the entity: <subject>."


class ExtraXregistryHeader(Problem, fixed_subject=REQUEST_PATH, document=HTTP):
    title = 'For "<subject>", xRegistry HTTP header "<name>" is not allowed on this request: <error_detail>.'


class HeaderError(Problem, fixed_subject=REQUEST_PATH, document=HTTP):
    title = 'For "<subject>", there was an error processing HTTP header "<name>": <error_detail>.'


class MissingBody(Problem, fixed_subject=REQUEST_PATH, document=HTTP):
    title = "For \"<subject>\", the request is missing an HTTP body - try '{}'."


class MissingVersions(Problem, fixed_subject=REQUEST_PATH, document=HTTP):
    title = 'For "<subject>", at least one Version needs to be included in the request.'


#: Every type by its name.
PROBLEM_TYPES: Final[dict[str, type[Problem]]] = {kind.name: kind for kind in Problem.__subclasses__()}
