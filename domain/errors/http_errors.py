"""Errors that the specifications leave to plain HTTP, in the form of their error types.

Their `type` is `/-/docs#<name>`, below the registry's own root.
"""

from __future__ import annotations

from typing import ClassVar, Final

from annals.domain.errors.problems import NO_SUBJECT, REQUEST_PATH, Problem

#: Where these types are explained, relative to the root of the registry.
DOCS_PATH: Final = "/-/docs"


class HttpProblem(Problem):
    """A problem whose type this program defines."""

    document = DOCS_PATH
    fixed_subject: ClassVar[str | None] = REQUEST_PATH


class Unauthorized(HttpProblem, status=401):
    """`unauthorized`, HTTP 401: the caller is missing or unknown."""

    title = 'For "<subject>", a valid credential is needed: <error_detail>.'


class ProviderUnavailable(HttpProblem, status=502):
    """`provider_unavailable`, HTTP 502: the provider that signs people in does not answer as it has to."""

    title = 'For "<subject>", the sign-in provider cannot be used at the moment; try again later.'


class TookTooLong(HttpProblem, status=503):
    """`took_too_long`, HTTP 503: a page would take longer than pages may."""

    title = "This took too long: <error_detail>."


class TooManyAttempts(HttpProblem, status=429):
    """`too_many_attempts`, HTTP 429: too many credentials of this client were not valid."""

    title = 'For "<subject>", too many credentials were not valid; try again in <retry_after> seconds.'


class TooManyRequests(HttpProblem, status=429):
    """`too_many_requests`, HTTP 429: the caller sends more requests per second than the settings allow."""

    title = 'For "<subject>", a caller may send <rate> <kind> a second; try again in <retry_after> seconds.'


class Forbidden(HttpProblem, status=403):
    """`forbidden`, HTTP 403: the caller is known, but has no role that allows this."""

    title = 'The caller "<caller>" is not allowed to do this: <subject>.'


class CrossOrigin(HttpProblem, status=403):
    """`cross_origin`, HTTP 403: a browser sends a write for a page of another origin."""

    title = (
        'For "<subject>", a page of another origin, "<origin>", requests a change. Pages that may do this are those of '
        "the origins in ANNALS_CORS_ORIGINS; where that is *, their changes need the header Authorization."
    )


class ForbiddenDestination(HttpProblem, status=403):
    """`forbidden_destination`, HTTP 403: a page would execute or embed stored content."""

    title = 'For "<subject>", a browser requests this as "<destination>" of a page, which is not allowed.'


class MisdirectedRequest(HttpProblem, status=421):
    """`misdirected_request`, HTTP 421: the request is for a host that is not this server."""

    title = (
        'For "<subject>", the request is for the host "<host>", which is not a known name of this server. If it is '
        "one, add it to the setting ANNALS_HOSTS."
    )


class NotAcceptable(HttpProblem, status=406):
    """`not_acceptable`, HTTP 406: the response has none of the media types that the client accepts."""

    title = 'For "<subject>", the HTTP header "Accept" names none of the available media types: <list>.'


class PreconditionFailed(HttpProblem, status=412):
    """`precondition_failed`, HTTP 412: the condition in a header does not hold. Never about epochs (ERR-7)."""

    title = 'For "<subject>", the condition in the HTTP header "<name>" does not hold: <error_detail>.'


class BodyTooLarge(HttpProblem, status=413):
    """`body_too_large`, HTTP 413: the body is larger than the server accepts."""

    title = 'For "<subject>", the body of the request is larger than <max_size> bytes.'


class RequestTimeout(HttpProblem, status=408):
    """`request_timeout`, HTTP 408: the request did not arrive in time."""

    title = 'For "<subject>", <part> of the request did not arrive in time; send it again, faster.'


class UriTooLong(HttpProblem, status=414, fixed_subject=NO_SUBJECT):
    """`uri_too_long`, HTTP 414: the request line is longer than the server accepts."""

    title = "The request line has more than <max_size> bytes; request less at once."


class HeadersTooLarge(HttpProblem, status=431):
    """`headers_too_large`, HTTP 431: the headers are larger than the server accepts."""

    title = (
        'For "<subject>", <error_detail>. Attributes that are too large for headers go into the body: '
        "send them as JSON to the path with $details."
    )


class TooManyConnections(HttpProblem, status=503, fixed_subject=NO_SUBJECT):
    """`too_many_connections`, HTTP 503: the server has its maximum number of connections."""

    title = "The server has <max_connections> connections open, which is its limit; try again later."


class UnsupportedMediaType(HttpProblem, status=415):
    """`unsupported_media_type`, HTTP 415: the body has none of the media types that the path accepts."""

    title = 'For "<subject>", the HTTP header "Content-Type" names none of the available media types: <list>.'


class UnsupportedCoding(HttpProblem, status=415):
    """`unsupported_coding`, HTTP 415: the body has a content coding that the server cannot decode."""

    title = 'For "<subject>", the body has the content coding "<coding>"; use gzip or identity.'


class StoreUnavailable(HttpProblem, status=503):
    """`store_unavailable`, HTTP 503: the disk is full or damaged, a lock is held, or the database is unreachable."""

    title = (
        'The store could not be used for "<subject>": <error_detail>. Requests that were not acknowledged may be sent '
        "again."
    )


class WriteUnconfirmed(HttpProblem, status=503):
    """`write_unconfirmed`, HTTP 503: the database did not confirm the commit of the write."""

    title = (
        'The database did not confirm the write to "<subject>", which may have been carried out or not. The log shows '
        "it; look there before you send the request again."
    )


class PositionNotReached(HttpProblem, status=503):
    """`position_not_reached`, HTTP 503: the server has not yet the position for which a read waits."""

    title = (
        'For "<subject>", the parameter "waitfor" names position <position> of the log, but this server has reached '
        "only <reached>."
    )


class ArchiveUnavailable(HttpProblem, status=503, fixed_subject=NO_SUBJECT):
    """`archive_unavailable`, HTTP 503: old events are needed whose states the archive has, and it cannot be read."""

    title = (
        'Events at the positions <first> to <last> of the log are needed, and the archive "<archive>", which has their '
        "states, cannot be read: <error_detail>."
    )


class InvalidMember(HttpProblem):
    """HTTP 400: a member of a subscription or a link is invalid. pointer: a JSON Pointer to it."""

    @classmethod
    def at_pointer(cls, code: str, pointer: str, reason: str) -> InvalidMember:
        """The problem at a place in a document. code: for programs."""
        extensions: dict[str, object] = {"code": code, "pointer": pointer}
        return cls(pointer=pointer, error_detail=reason, extensions=extensions)


class InvalidKey(InvalidMember):
    """`invalid_key`: a member of an API key breaks a rule."""

    title = 'The API key is not valid at "<pointer>": <error_detail>.'


class InvalidGrant(InvalidMember):
    """`invalid_grant`: a member of a grant breaks a rule."""

    title = 'The grant is not valid at "<pointer>": <error_detail>.'


class InvalidLink(InvalidMember):
    """`invalid_link`: a member of a replication link breaks a rule."""

    title = 'The link is not valid at "<pointer>": <error_detail>.'


class InvalidSubscription(InvalidMember):
    """`invalid_subscription`: a member of a subscription breaks a rule."""

    title = 'The subscription is not valid at "<pointer>": <error_detail>.'


class QuotaExceeded(HttpProblem, status=429):
    """`quota_exceeded`, HTTP 429: the caller has reached a quota."""

    title = 'For "<subject>", a quota is exceeded: <error_detail>.'


class ReplayRunning(HttpProblem, status=409):
    """`replay_running`, HTTP 409: a second replay would interfere with the first."""

    title = 'For "<subject>", another replay is still running; start this one after it.'


class RemoteUnavailable(HttpProblem, status=502, fixed_subject=None):
    """`remote_unavailable`, HTTP 502: the other registry of a link is needed, but gives no usable response."""

    title = 'The other registry of the link "<subject>" cannot be used: <error_detail>.'


class Diverged(HttpProblem, status=409, fixed_subject=None):
    """`diverged`, HTTP 409: the interactions of a link do not continue the current state of this registry."""

    title = 'The link "<subject>" cannot continue: <error_detail>.'


class NotReceiving(HttpProblem, status=409, fixed_subject=None):
    """`not_receiving`, HTTP 409: a log is pushed to a link that does not receive, or not now."""

    title = 'The link "<subject>" does not receive a log, or not now.'


class LogGap(HttpProblem, status=409, fixed_subject=None):
    """`log_gap`, HTTP 409: interactions are missing between the received part of a log and the pushed part."""

    title = 'The link "<subject>" has the other log up to position <position>, but this part begins after <after>.'
