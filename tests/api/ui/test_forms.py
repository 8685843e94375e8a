"""Forms that no browser sends: other charsets than UTF-8."""

from __future__ import annotations

from time import thread_time

import pytest

from tests.support.registries.in_process import Api, create, serving

BODY = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n%b\r\n--x--\r\n'


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "raw_unicode_escape", "idna", "none"])
@pytest.mark.parametrize("path", ["/ui/model", "/ui/login"])
def test_other_charsets_are_refused(sqlite_url: str, path: str, charset: str) -> None:
    """UI-87: by any caller, before anything is decoded: some codecs take quadratic time, or make no texts."""
    create(sqlite_url)
    with serving(sqlite_url, tokens='{"t": {"name": "ada", "role": "admin"}}') as api:
        api.runner.run(api.client.post("/ui/login", data={"token": "t"}))
        api.client.cookies.delete("annals")  # the session has ended, so the sign-in would keep the form
        started = thread_time()
        answer = _send(api, path, b"a" * 300_000 + b"+2AA-\\ud800", f"; charset={charset}")
        assert answer == 400
        assert thread_time() - started < 1


def test_charsets_of_browsers(sqlite_url: str) -> None:
    create(sqlite_url)
    with serving(sqlite_url) as api:
        for parameter in ("", "; charset=utf-8", '; charset="UTF-8"'):
            assert _send(api, "/ui/model", '{"description": "ü"}'.encode(), parameter) == 303


def _send(api: Api, path: str, text: bytes, parameter: str) -> int:
    content_type = f"multipart/form-data; boundary=x{parameter}"
    return api.send("POST", path, BODY % text, content_type=content_type, accept="text/html").status_code
