"""Properties of the HTTP sink for any address, secret and event."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import unquote

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from hypothesis import example, given
from hypothesis import strategies as st

from annals.projections.outgoing.allow_list import is_public
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.outgoing.resolver import ForbiddenAddress
from annals.projections.subscriptions.sinks.http.messages import encode_message, header_value
from annals.projections.subscriptions.transport.scrub import MAX_TEXT_BYTES, scrub_secrets
from tests.projections.subscriptions.events import event

IPV4 = st.ip_addresses(v=4) | st.sampled_from(["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10"]).flatmap(
    lambda network: st.ip_addresses(network=network)
)
#: Forms of IPv6 addresses whose packets end up at an IPv4 address.
INSIDE = {
    "mapped": lambda number: (0xFFFF << 32) | number,
    "compatible": lambda number: number,
    "translated": lambda number: (0xFFFF << 48) | number,
    "NAT64": lambda number: (0x64_FF9B << 96) | number,
    "6to4": lambda number: (0x2002 << 112) | (number << 80) | 1,
    "Teredo": lambda number: (0x2001 << 112) | (0x0808_0808 << 64) | (number ^ 0xFFFFFFFF),
}


@given(IPV4, st.sampled_from(sorted(INSIDE)))
def test_an_address_inside_another_is_not_better_than_by_itself(inner: IPv4Address, form: str) -> None:
    # SUB-901: every IPv6 form of a refused IPv4 address is refused
    assert is_public(IPv6Address(INSIDE[form](int(inner)))) == is_public(inner)


@given(IPV4, st.sampled_from(["{:d}", "{:#x}", "0{:o}"]))
def test_numbers_are_the_addresses_that_they_mean(address: IPv4Address, form: str) -> None:
    # SUB-902: a host in one number is permitted or refused like its dotted form
    def outcome(host: str) -> str:
        try:
            return asyncio.run(DestinationGuard().resolve(host, 443))
        except ForbiddenAddress as refused:
            return str(refused)

    assert outcome(form.format(int(address))) == outcome(str(address))


@given(st.text(min_size=1, max_size=40), st.text(max_size=60), st.integers(0, 3))
@example("a b", "a\n b", 0)
def test_no_secret_is_kept(secret: str, around: str, repeated: int) -> None:
    # SUB-823, SUB-303: a response is stored as one short line, without the secrets of the request
    text = (around + secret) * repeated + around
    found = scrub_secrets(text.encode(errors="surrogatepass"), [secret])
    assert len(found.encode()) <= MAX_TEXT_BYTES
    assert "\n" not in found
    # Only a secret of asterisks may remain, because asterisks replace secrets.
    if set(secret) - set("* "):
        assert secret not in found


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=50)


@given(TEXTS)
def test_any_text_goes_through_a_header(text: str) -> None:
    # SUB-701: only visible ASCII, which decodes to the same text
    written = header_value(text)
    assert unquote(written) == text
    assert all("!" <= each <= "~" and each != '"' for each in written)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("mode", ["structured", "binary"])
@given(TEXTS, TEXTS, st.dictionaries(TEXTS, JSON, min_size=1, max_size=3))
def test_any_event_is_read_again(mode: str, subject: str, extension: str, data: dict[str, object]) -> None:
    # SUB-710: the library reads the same event, in both modes
    made = event(subject=subject, extension=extension, data=data)
    headers, body = encode_message([made], mode)
    found = http.from_http(http.HTTPMessage({name.lower(): value for name, value in headers}, body), JSONFormat())
    assert (found.get_attributes(), found.get_data()) == (made.get_attributes(), data)
