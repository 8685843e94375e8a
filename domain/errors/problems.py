"""Every error type of the specifications as one exception class each.

A problem is raised where its rule is known, `raise MismatchedEpoch(xid, bad_epoch=9, epoch=3)`, and becomes an HTTP
response in one place (`api/http/problem_response.py`). The table below is the catalogue; the placeholders in a title
are the arguments of the class.
Spec: core 1.0-rc4, "Error Processing"; HTTP binding 1.0-rc4, "Error Processing".
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from domain.values.json_text import dumps

SPEC: Final = "https://github.com/xregistry/spec/blob/main/core/spec.md"
HTTP: Final = "https://github.com/xregistry/spec/blob/main/core/http.md"

#: Subjects that are not an entity: the path or URL of the request (filled in by the HTTP layer), or none at all.
REQUEST_PATH: Final = "<request_path>"
REQUEST_URL: Final = "<request_url>"
NO_SUBJECT: Final = ""

_PLACEHOLDER: Final = re.compile(r"<([a-z][a-z0-9_]*)>")


class Problem(Exception):
    """One refused request: what is wrong, the subject, and the text of the error.

    subject: an xid, or None if the type defines that it is the request (or nothing).
    arguments: exactly the placeholders of the title; stored as strings, as responses show them.
    detail: free text for people. extensions: additional members of the response, JSON values.
    """

    name: ClassVar[str] = "server_error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = ""
    document: ClassVar[str] = SPEC
    about: ClassVar[str | None] = (
        None  # a fixed subject, REQUEST_PATH, REQUEST_URL, NO_SUBJECT; None: given when raised
    )

    def __init__(
        self,
        subject: str | None = None,
        /,
        *,
        detail: str | None = None,
        extensions: dict[str, object] | None = None,
        **arguments: object,
    ) -> None:
        wanted = self.placeholders()
        if set(arguments) != wanted:
            raise TypeError(f"{self.name} takes {sorted(wanted)}, not {sorted(arguments)}")
        if (subject is None) != (self.about is not None):
            raise TypeError(f"{self.name}: a subject is {'given by the type' if self.about is not None else 'missing'}")
        self.subject = subject if subject is not None else self.about
        self.arguments = {key: _text(value) for key, value in arguments.items()}
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
        """The title with its placeholders filled in. subject: replaces a request's path or URL."""
        values = {"subject": subject or self.subject or "", **self.arguments}
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.title)


def _text(value: object) -> str:
    """Strings unchanged, other values as JSON."""
    return dumps(value).decode() if isinstance(value, (bool, float, list, dict)) else str(value)


def _problem(name: str, status: int, about: str | None, title: str, document: str = SPEC) -> type[Problem]:
    words = "".join(word.capitalize() for word in name.split("_"))
    members = {"name": name, "status": status, "title": title, "document": document, "about": about}
    return type(words, (Problem,), {**members, "__doc__": f"`{name}`, HTTP {status}.", "__module__": __name__})


ActionNotSupported = _problem(
    "action_not_supported",
    405,
    REQUEST_PATH,
    "The specified action (<action>) is not supported for: <subject>.",
)
AncestorCircularReference = _problem(
    "ancestor_circular_reference",
    400,
    None,
    'For "<subject>", the request would create a circular list of ancestors: <list>.',
)
BadDefaultversionid = _problem(
    "bad_defaultversionid",
    400,
    REQUEST_PATH,
    'For "<subject>", an error was found in the "defaultversionid" value specified (<value>): <error_detail>.',
)
BadDetails = _problem(
    "bad_details",
    400,
    REQUEST_PATH,
    'Use of "$details" in this context is not allowed: <subject>.',
)
BadFilter = _problem(
    "bad_filter",
    400,
    REQUEST_PATH,
    'For "<subject>", an error was found in "filter" value (<value>): <error_detail>.',
)
BadFlag = _problem(
    "bad_flag",
    400,
    REQUEST_PATH,
    "The specified flag (<flag>) is not allowed in this context: <subject>.",
)
BadIgnore = _problem(
    "bad_ignore",
    400,
    REQUEST_PATH,
    'For "<subject>", an error was found in "ignore" value (<value>): <error_detail>.',
)
BadInline = _problem(
    "bad_inline",
    400,
    REQUEST_PATH,
    'For "<subject>", an error was found in "inline" value (<value>): <error_detail>.',
)
BadRequest = _problem(
    "bad_request",
    400,
    REQUEST_PATH,
    "<error_detail>.",
)
BadSort = _problem(
    "bad_sort",
    400,
    REQUEST_PATH,
    'For "<subject>", an error was found in "sort" value (<value>): <error_detail>.',
)
CannotDocXref = _problem(
    "cannot_doc_xref",
    400,
    None,
    'Retrieving the document view of a Version for "<subject>" is not allowed because it uses "xref".',
)
CapabilityError = _problem(
    "capability_error",
    400,
    "/capabilities",
    "There was an error in the capabilities provided: <error_detail>.",
)
CapabilityMissingValue = _problem(
    "capability_missing_value",
    400,
    "/capabilities",
    'The "<name>" capability needs to contain "<value>".',
)
CapabilityUnknown = _problem(
    "capability_unknown",
    400,
    "/capabilities",
    "Unknown capability specified: <field>.",
)
CapabilityValue = _problem(
    "capability_value",
    400,
    "/capabilities",
    'Invalid value (<value>) specified for capability "<field>". Allowable values include: <list>.',
)
CapabilityWildcard = _problem(
    "capability_wildcard",
    400,
    "/capabilities",
    'When "<field>" includes a value of "*" then no other values are allowed.',
)
CompatibilityUnknown = _problem(
    "compatibility_unknown",
    400,
    None,
    'The compatibility value (<compat>) on Resource "<subject>" is not supported for format "<format>".',
)
CompatibilityViolation = _problem(
    "compatibility_violation",
    400,
    None,
    'The request would cause one or more Versions of "<subject>" to violate its compatibility rule (<compat>).',
)
ConstraintFailure = _problem(
    "constraint_failure",
    400,
    None,
    'The request would result in one or more Versions of "<subject>" not being compliant with its owning Group\'s "<kind>" constraint for attribute "<path>".',
)
DataRetrievalError = _problem(
    "data_retrieval_error",
    500,
    None,
    "The server was unable to retrieve all of the requested data.",
)
DefaultversionidRequest = _problem(
    "defaultversionid_request",
    400,
    None,
    'Processing "<subject>", the "defaultversionid" attribute is not allowed to be "request" since a Version wasn\'t processed.',
)
ExtraXrefAttribute = _problem(
    "extra_xref_attribute",
    400,
    None,
    'Attribute "<name>" is not allowed to be present since the "<singular>" (<subject>) uses "xref".',
)
FormatExternal = _problem(
    "format_external",
    400,
    None,
    'Version "<subject>" references a document stored outside of the Registry, therefore no validation was performed.',
)
FormatUnknown = _problem(
    "format_unknown",
    400,
    None,
    'Version "<subject>" has a "format" value (<format>) that it not supported.',
)
FormatViolation = _problem(
    "format_violation",
    400,
    None,
    'The request would cause Version "<subject>" to be non-compliant with its "format" (<format>).',
)
GroupsOnly = _problem(
    "groups_only",
    400,
    REQUEST_PATH,
    'Attribute "<name>" is invalid. Only Group types are allowed to be specified on this request: <subject>.',
)
HasdocumentViolation = _problem(
    "hasdocument_violation",
    400,
    None,
    'The request would cause Version "<subject>" to be non-compliant. The model definition of "<plural>" has "hasdocument" set to "false" but this Version has document content.',
)
InlineNoninlineable = _problem(
    "inline_noninlineable",
    400,
    REQUEST_PATH,
    "Attempting to inline a non-inlineable attribute (<name>) on: <subject>.",
)
InvalidAttribute = _problem(
    "invalid_attribute",
    400,
    None,
    'The attribute "<name>" for "<subject>" is not valid: <error_detail>.',
)
MalformedId = _problem(
    "malformed_id",
    400,
    REQUEST_URL,
    'For "<subject>", the specified ID value (<id>) is malformed: <error_detail>.',
)
MalformedXid = _problem(
    "malformed_xid",
    400,
    REQUEST_URL,
    'For "<subject>", the specified XID value (<xid>) is malformed: <error_detail>.',
)
MalformedXref = _problem(
    "malformed_xref",
    400,
    REQUEST_URL,
    'For "<subject>", the specified xref value (<xref>) is malformed: <error_detail>.',
)
MismatchedEpoch = _problem(
    "mismatched_epoch",
    400,
    None,
    'The specified epoch value (<bad_epoch>) for "<subject>" does not match its current value (<epoch>).',
)
MismatchedId = _problem(
    "mismatched_id",
    400,
    None,
    'The specified "<singular>id" value (<invalid_id>) for "<subject>" needs to be "<expected_id>".',
)
MismatchedVersionAttribute = _problem(
    "mismatched_version_attribute",
    400,
    None,
    'The request would cause the "<name>" attribute across the Versions of "<subject>" to be different.',
)
MisplacedEpoch = _problem(
    "misplaced_epoch",
    400,
    None,
    'The specified "epoch" value for "<subject>" needs to be within a "meta" entity.',
)
ModelComplianceError = _problem(
    "model_compliance_error",
    400,
    "/model",
    "The model provided would cause one or more entities in the Registry to become non-compliant.",
)
ModelError = _problem(
    "model_error",
    400,
    "/model",
    "There was an error in the model definition provided: <error_detail>.",
)
ModelRequiredTrue = _problem(
    "model_required_true",
    400,
    "/model",
    'Model attribute "<name>" needs to have a "required" value of "true" since a default value is provided.',
)
ModelScalarDefault = _problem(
    "model_scalar_default",
    400,
    "/model",
    'Model attribute "<name>" is not allowed to have a default value since it is not a scalar.',
)
MultipleRoots = _problem(
    "multiple_roots",
    400,
    None,
    'The operation would result in multiple root Versions for "<subject>", which is not allowed for "<plural>".',
)
NotAvailable = _problem(
    "not_available",
    400,
    None,
    "The requested data (<subject>) is not available.",
)
NotFound = _problem(
    "not_found",
    404,
    None,
    "The targeted entity (<subject>) cannot be found.",
)
OneResource = _problem(
    "one_resource",
    400,
    None,
    'Only one attribute from "<list>" can be present at a time for: <subject>.',
)
ParsingData = _problem(
    "parsing_data",
    400,
    NO_SUBJECT,
    "There was an error parsing the data: <error_detail>.",
)
Readonly = _problem(
    "readonly",
    400,
    None,
    "Updating a read-only entity (<subject>) is not allowed.",
)
RequiredAttributeMissing = _problem(
    "required_attribute_missing",
    400,
    None,
    'One or more mandatory attributes for "<subject>" are missing: <list>.',
)
ResourcesOnly = _problem(
    "resources_only",
    400,
    None,
    'Attribute "<name>" is invalid. Only Resource types are allowed to be specified on this request: <subject>.',
)
ServerBusy = _problem(
    "server_busy",
    503,
    REQUEST_PATH,
    'Due to excessive requests, the server could not complete "<subject>", please try again later.',
)
ServerError = _problem(
    "server_error",
    500,
    REQUEST_PATH,
    "An unexpected error occurred, please try again later.",
)
SetdefaultversionstickyFalse = _problem(
    "setdefaultversionsticky_false",
    400,
    None,
    'For "<subject>", setting "defaultversionsticky" to "true" is not allowed since "maxversions" is "1".',
)
SortNoncollection = _problem(
    "sort_noncollection",
    400,
    REQUEST_PATH,
    "Can't sort on a non-collection result set. Query path: <subject>.",
)
TooLarge = _problem(
    "too_large",
    406,
    REQUEST_PATH,
    'For "<subject>", the size of the response is too large to return in a single response.',
)
TooManyVersions = _problem(
    "too_many_versions",
    400,
    REQUEST_PATH,
    'For "<subject>", when the "setdefaultversionid" flag is set to "request", only one Version is allowed to be specified in the request message.',
)
UnknownAttribute = _problem(
    "unknown_attribute",
    400,
    None,
    'An unknown attribute (<name>) was specified for "<subject>".',
)
UnknownGroupType = _problem(
    "unknown_group_type",
    400,
    None,
    'An unknown Group type (<name>) was specified in "<subject>".',
)
UnknownId = _problem(
    "unknown_id",
    400,
    None,
    'While processing "<subject>", the "<singular>" with a "<singular>id" value of "<id>" cannot be found.',
)
UnknownResourceType = _problem(
    "unknown_resource_type",
    400,
    None,
    'An unknown Resource type (<name>) was specified for Group type "<group>".',
)
UnsupportedSpecversion = _problem(
    "unsupported_specversion",
    400,
    REQUEST_PATH,
    'The specified "specversion" value (<specversion>) is not supported. Supported versions: <list>.',
)
VersionidNotAllowed = _problem(
    "versionid_not_allowed",
    400,
    None,
    'While creating a new Version for "<subject>", a "versionid" was specified but the "setversionid" model aspect for entities of type "<plural>" is "false".',
)
ApiNotFound = _problem(
    "api_not_found",
    404,
    REQUEST_PATH,
    "The specified API is not supported: <subject>.",
    HTTP,
)
DetailsRequired = _problem(
    "details_required",
    405,
    None,
    "$details suffix is needed when using PATCH for the entity: <subject>.",
    HTTP,
)
ExtraXregistryHeader = _problem(
    "extra_xregistry_header",
    400,
    REQUEST_PATH,
    'For "<subject>", xRegistry HTTP header "<name>" is not allowed on this request: <error_detail>.',
    HTTP,
)
HeaderError = _problem(
    "header_error",
    400,
    REQUEST_PATH,
    'For "<subject>", there was an error processing HTTP header "<name>": <error_detail>.',
    HTTP,
)
MissingBody = _problem(
    "missing_body",
    400,
    REQUEST_PATH,
    "For \"<subject>\", the request is missing an HTTP body - try '{}'.",
    HTTP,
)
MissingVersions = _problem(
    "missing_versions",
    400,
    REQUEST_PATH,
    'For "<subject>", at least one Version needs to be included in the request.',
    HTTP,
)

#: Every type by its name.
PROBLEM_TYPES: Final[dict[str, type[Problem]]] = {kind.name: kind for kind in Problem.__subclasses__()}
