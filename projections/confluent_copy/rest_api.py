"""The REST API of a schema registry, as copies call it: retries, and answers that mean that something is absent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from annals.projections.outgoing.resolver import Resolver

if TYPE_CHECKING:
    import httpx  # takes long, and few verbs need it

#: Statuses of a path that a registry does not have, or of a thing that is not there (CSR-1002). Apicurio answers 204,
#: without a body, to requests about the mode of a subject.
ABSENT: Final = (204, 404, 405, 501)
#: Seconds before each repetition of a request without an answer, or with one that tells of a passing failure.
RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 4.0)
#: The longest wait in seconds for which a registry can ask with `Retry-After`.
MAX_WAIT: Final = 60.0
_TOO_MANY_REQUESTS: Final = 429
#: What is wrong with an answer of something else.
NO_DOCUMENT: Final = "its answer is not that of a schema registry"
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_SECONDS: Final = 60.0
_MAX_DETAIL: Final = 500
#: The number of members in a page of a list, and how often pages of one list are read again.
PAGE: Final = 1000
MAX_REPEATED_PAGES: Final = 20
_OK: Final = 200


class RestAnswer(NamedTuple):
    """body: parsed JSON; None where there is none."""

    status: int
    body: Any


class RestApi(Protocol):
    """Sends requests to one registry; any number of threads may use it."""

    def send(self, method: str, path: str, body: Any = None) -> RestAnswer:
        """The answer, whatever its status. path: with the query, encoded. Raises: RestError without an answer."""


class RestError(Exception):
    """The registry does not answer, or refuses a request. status: of its answer, 0 without one. code: `error_code`."""

    def __init__(self, message: str, status: int = 0, code: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class HttpApi:
    """A registry by the URL of its API. It follows no redirects, and connects to permitted addresses only (LEG-1108).

    headers: of each request, with the credential. Callers have to `close` it.
    """

    def __init__(
        self,
        url: str,
        resolver: Resolver,
        *,
        headers: Mapping[str, str] | None = None,
        user: tuple[str, str] | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """user: name and password. wait: waits before each request, 0 seconds before the first."""
        import httpx

        from annals.projections.replication.remote.guarded_connections import guarded_transport

        own_headers = {
            "accept": f"{_MEDIA_TYPE}, application/json",
            "content-type": _MEDIA_TYPE,
            "confluent-accept-unknown-properties": "true",
        }
        self.url = url.rstrip("/")
        self._wait = wait
        self._client = httpx.Client(
            auth=user,
            headers={**own_headers, **(headers or {})},
            timeout=_SECONDS,
            transport=guarded_transport(resolver),
        )

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def send(self, method: str, path: str, body: Any = None) -> RestAnswer:
        """See `RestApi`. Requests are repeated, so they have to mean the same twice.

        A repetition waits as long as `Retry-After` asks, up to `MAX_WAIT`.
        """
        import httpx

        content = None if body is None else json.dumps(body).encode()
        failure: RestError | None = None
        asked_seconds = 0.0
        for seconds in (0.0, *RETRY_SECONDS):
            self._wait(max(seconds, asked_seconds))
            asked_seconds = 0.0
            try:
                response = self._client.request(method, self.url + path, content=content)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                text = " ".join(str(error).split()) or type(error).__name__
                failure = RestError(f"{self.url} does not answer: {text}")
                if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
                    break
                continue
            answer = RestAnswer(response.status_code, _parse(response))
            is_passing = answer.status >= 500 or answer.status == _TOO_MANY_REQUESTS
            if not is_passing or answer.status in ABSENT:
                return answer
            failure, asked_seconds = refusal(method, path, answer), _retry_after(response)
        assert failure is not None, "there was an attempt"
        raise failure


def _retry_after(response: httpx.Response) -> float:
    """The seconds that an answer asks to wait: a number, or the time until a date."""
    text = response.headers.get("retry-after", "").strip()
    try:
        seconds = float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, IndexError, OverflowError):  # the parser of dates raises each of them
        return 0.0
    return min(max(seconds, 0.0), MAX_WAIT)


def _parse(response: httpx.Response) -> Any:
    try:
        return response.json() if response.content else None
    except (ValueError, RecursionError):
        return None


def refusal(method: str, path: str, answer: RestAnswer) -> RestError:
    """The error for an answer that is no success."""
    body = answer.body if isinstance(answer.body, dict) else {}
    code, message = body.get("error_code"), body.get("message")
    text = f": {' '.join(message.split())[:_MAX_DETAIL]}" if isinstance(message, str) else ""
    return RestError(
        f"{method} {path.partition('?')[0]} answers {answer.status}{text}",
        answer.status,
        code if isinstance(code, int) else 0,
    )


def ask(api: RestApi, method: str, path: str, body: Any = None) -> Any:
    """The body of a successful answer. Raises: RestError."""
    answer = api.send(method, path, body)
    if not 200 <= answer.status < 300:
        raise refusal(method, path, answer)
    return answer.body


def ask_if_present(api: RestApi, path: str) -> Any:
    """The body of the answer to a GET; None for what is absent. Raises: RestError."""
    answer = api.send("GET", path)
    if answer.status in ABSENT:
        return None
    if not 200 <= answer.status < 300:
        raise refusal("GET", path, answer)
    if answer.body is None:
        raise RestError(f"GET {path.partition('?')[0]}: {NO_DOCUMENT}", answer.status)
    return answer.body


def require_object(path: str, body: Any) -> dict[str, Any]:
    """The body of an answer, if it is an object. path: for the error. Raises: RestError."""
    if not isinstance(body, dict):
        raise RestError(f"{path}: {NO_DOCUMENT}", _OK)
    return body


def pages(api: RestApi, path: str, parameters: str = "") -> Iterator[Any]:
    """The members of a list, page after page. A registry that knows no pages sends all of them at once.

    A page begins with the last member of the one before. If it does not, the list has become shorter meanwhile, and the
    page before is read again, so that no member is skipped; then some members come twice.
    Raises: RestError.
    """
    first = last = None
    offset = repeated = 0
    while True:
        query = "&".join(filter(None, (parameters, f"offset={offset}", f"limit={PAGE}")))
        members = ask(api, "GET", f"{path}?{query}")
        if not isinstance(members, list):
            raise RestError(f"GET {path}: {NO_DOCUMENT}", _OK)
        if offset and members[:1] == [first]:
            return  # the registry has no pages
        if offset and members[:1] != [last]:
            offset, repeated = max(offset - PAGE, 0), repeated + 1
            if repeated > MAX_REPEATED_PAGES:
                raise RestError(f"GET {path}: its pages do not fit together", _OK)
            continue
        new = members[1:] if offset else members
        yield from new
        if not new or len(members) == 1 or len(members) > PAGE:
            return
        first, last = members[0] if not offset else first, members[-1]
        offset += len(members) - 1
