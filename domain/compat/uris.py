"""URIs of Versions: how they are composed, when two are equal, and which Version of this registry a path names.

Spec: RFC 3986, sections 3, 4.1, 6.2.2 and appendix A. Rules LEG-601 to 603, LEG-607, LEG-608.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Final, NamedTuple
from urllib.parse import unquote

from annals.domain.compat.ids import decode_segment, encode_segment, to_legacy_id, to_registry_id
from annals.domain.compat.legacy_apis import LegacyApi, is_number, legacy_api_of
from annals.domain.values import xid as xids

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
#: Splits any reference into its parts, as in appendix B of RFC 3986.
_URI_PARTS: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?\Z", re.DOTALL)
_UNRESERVED: Final = r"A-Za-z0-9\-._~"
_SUBDELIMS: Final = r"!$&'()*+,;="
_ENCODED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
#: These match a text that is valid as one part of a URI.
_PATH: Final = re.compile(rf"(?:[{_UNRESERVED}{_SUBDELIMS}:@/]|%[0-9A-Fa-f]{{2}})*\Z")
_QUERY: Final = re.compile(rf"(?:[{_UNRESERVED}{_SUBDELIMS}:@/?]|%[0-9A-Fa-f]{{2}})*\Z")
_AUTHORITY: Final = re.compile(
    rf"(?:(?:[{_UNRESERVED}{_SUBDELIMS}:]|%[0-9A-Fa-f]{{2}})*@)?"
    rf"(?:\[([^\[\]]*)\]|(?:[{_UNRESERVED}{_SUBDELIMS}]|%[0-9A-Fa-f]{{2}})*)(?::[0-9]*)?\Z"
)
_IP_FUTURE: Final = re.compile(rf"[vV][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUBDELIMS}:]+\Z")
#: A function that returns the Version which a path names.
_PathReader = Callable[[LegacyApi, str], "VersionLocation | None"]
_SINGULAR_VERSION: Final = re.compile(r"/version/([^/?#]+)\Z")
_DETAILS: Final = "$details"


class VersionLocation(NamedTuple):
    """The Version that a path names, by ids of the registry.

    version: an int is the number of the Version. If no Version has that number, it is the versionid with these digits.
    A text is always a versionid.
    """

    groupid: str
    id: str
    version: int | str


def compose_uri(authority: str | None, id: str | None, base_url: str, path: str) -> str:
    """The URI of a Version: the authority, then its id, joined without resolving; the id alone if it is absolute.

    authority, id: empty or None where the client gave none. base_url: URL of the façade. path: from
    `default_version_path`.
    """
    prefix, suffix = authority or base_url, id or path
    if is_absolute(suffix):
        return suffix
    scheme, _, after_scheme = prefix.partition(":")
    if after_scheme.startswith("/") and suffix.startswith("//"):
        return f"{scheme}:{suffix}"
    if "#" in prefix:  # a URI has only one fragment
        suffix = suffix.replace("#", "%23")
    if not after_scheme.startswith("/"):
        return f"{prefix.removesuffix(':')}:{suffix[1:] if suffix[0] in ':/' else suffix}"
    return f"{prefix.removesuffix('/')}/{suffix.removeprefix('/')}"


def default_version_path(family: LegacyApi, groupid: str, id: str, number: int) -> str:
    """The default id of a Version, a relative reference: its path below the base of its façade.

    groupid, id: decoded legacy ids.
    """
    return f"/{family.path}/{encode_segment(groupid)}/{family.children}/{encode_segment(id)}/versions/{number}"


def entity_path(xid: str, number: int | None = None) -> str:
    """The path of a Group or a definition below the base of its façade; with a number, the path of that Version.

    Raises: ValueError where no legacy API shows the xid.
    """
    family = legacy_api_of(xid)
    if family is None:
        raise ValueError(f"no legacy API shows {xid}")
    groupid, *id = (encode_segment(to_legacy_id(segment)) for segment in xids.segments(xid)[1:4:2])
    path = f"/{family.path}/{groupid}" + "".join(f"/{family.children}/{segment}" for segment in id)
    return path if number is None else f"{path}/versions/{number}"


def is_absolute(reference: str) -> bool:
    """Whether a URI reference has a scheme and therefore is a URI."""
    return bool(_SCHEME.match(reference))


def check_uri(value: str) -> str:
    """The value itself, if it is a URI, which has a scheme. Raises: ValueError."""
    if not is_absolute(value):
        raise ValueError("it is not a URI: it has no scheme")
    return check_reference(value)


def check_reference(value: str) -> str:
    """The value itself, if it is a URI reference: absolute, relative or empty. Raises: ValueError."""
    scheme, authority, path, query, fragment = _split_uri(value)
    has_empty_scheme = scheme is None and authority is None and path.startswith(":")
    if has_empty_scheme or (scheme is not None and not _SCHEME.match(scheme + ":")):
        raise ValueError("it is not a URI: the part before its first colon is not a scheme")
    if authority is not None:
        _check_authority(authority)
    if not _PATH.match(path) or not _QUERY.match(query or "") or not _QUERY.match(fragment or ""):
        raise ValueError("it is not a URI: it has a character that has to be percent-encoded (RFC 3986)")
    return value


def normalize_uri(uri: str) -> str:
    """The URI with scheme and host in lower case, percent-encoding in upper case, and no unnecessary percent-encoding.

    References without a scheme are handled the same way. In a text that is no reference, only the encoding is
    normalised.
    """
    scheme, authority, path, query, fragment = _split_uri(_ENCODED.sub(_normalize_octet, uri))
    prefix = "" if scheme is None else f"{scheme.lower()}:"
    if authority is not None:
        user, separator, host = authority.rpartition("@")
        prefix += f"//{user}{separator}{_ENCODED.sub(lambda found: found[0].upper(), host.lower())}"
    query_part = "" if query is None else f"?{query}"
    return prefix + path + query_part + ("" if fragment is None else f"#{fragment}")


def uri_candidates(uri: str) -> tuple[str, ...]:
    """The normalised URIs that a requested one may mean: itself, and `versions/<n>` for `version/<n>` at its end."""
    normalized = normalize_uri(uri)
    match = _SINGULAR_VERSION.search(normalized)
    if match is None or not is_number(match[1]):
        return (normalized,)
    return normalized, f"{normalized[: match.start()]}/versions/{match[1]}"


def locate_version(family: LegacyApi, uri: str, bases: Sequence[str]) -> VersionLocation | None:
    """The Version that a path or a URL names, in the form of the legacy API or of the registry itself.

    bases: URLs below which the legacy API has its paths, and the registry's public URL. A base is the registry's if the
    same URL followed by the API's `base` is in the list too; paths below it identify Versions by versionid.
    """
    normalized = uri_candidates(uri)[-1]
    for path, read_path in _path_candidates(
        family, normalized, {normalize_uri(base_url).rstrip("/") for base_url in bases}
    ):
        if location := read_path(family, path):
            return location
    return None


def locate_by_ending(family: LegacyApi, uri: str) -> VersionLocation | None:
    """The Version whose path below the base of its legacy API ends the URI, with any text before that path."""
    match = re.search(rf"(?<=[:/]){family.path}(?:/[^/]+){{5}}\Z", normalize_uri(uri))
    return _locate_by_number(family, f"/{match[0]}") if match else None


def _path_candidates(family: LegacyApi, uri: str, roots: set[str]) -> Iterator[tuple[str, _PathReader]]:
    """The paths that a URI may contain, each with the function that reads it."""
    if uri.startswith("/"):
        yield uri.removeprefix(family.base), _locate_by_number
        yield uri, _locate_by_xid
    for root in sorted(roots, key=len, reverse=True):
        if not uri.startswith(root + "/"):
            continue
        is_own_root = root + family.base in roots
        if not is_own_root or family.path != family.groups:  # the root serves legacy paths unless a type has that name
            yield uri[len(root) :], _locate_by_number
        if is_own_root:
            yield uri[len(root) :], _locate_by_xid


def _locate_by_number(family: LegacyApi, path: str) -> VersionLocation | None:
    """The Version that a path of the legacy API names."""
    segments = path[1:].split("/")
    if len(segments) != 6 or segments[::2] != [family.path, family.children, "versions"] or not is_number(segments[5]):
        return None
    try:
        return VersionLocation(
            to_registry_id(decode_segment(segments[1])), to_registry_id(decode_segment(segments[3])), int(segments[5])
        )
    except ValueError:
        return None


def _locate_by_xid(family: LegacyApi, path: str) -> VersionLocation | None:
    """The Version that an xid or the path of a `self` URL names."""
    segments = [unquote(part) for part in path.removesuffix(_DETAILS)[1:].split("/")]
    if len(segments) != 6 or segments[::2] != [family.groups, family.resources, "versions"]:
        return None
    return VersionLocation(*segments[1::2]) if all(map(xids.ID.match, segments[1::2])) else None


def _split_uri(uri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """Scheme, authority, path, query and fragment of any text; None for missing ones."""
    match = _URI_PARTS.match(uri)
    assert match is not None  # the pattern matches every text
    return match[1], match[2], match[3], match[4], match[5]


def _check_authority(authority: str) -> None:
    match = _AUTHORITY.match(authority)
    if match is None:
        raise ValueError("it is not a URI: the part after // is not a host (RFC 3986)")
    if match[1] is not None and not _IP_FUTURE.match(match[1]):
        try:
            IPv6Address(match[1] if "%" not in match[1] else "")
        except AddressValueError:
            raise ValueError("it is not a URI: the part in brackets is not an IP address") from None


def _normalize_octet(match: re.Match[str]) -> str:
    """The normal form of an encoded octet: the character if it is unreserved, else its encoding in upper case."""
    character = chr(int(match[1], 16))
    return character if re.match(f"[{_UNRESERVED}]", character) else match[0].upper()
