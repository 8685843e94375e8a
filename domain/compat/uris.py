"""URIs of Versions: what they are made of, when two are the same, and which path of this registry one names.

Spec: RFC 3986, sections 3, 4.1, 6.2.2 and appendix A. Rules LEG-601 to 603, LEG-607, LEG-608.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Final, NamedTuple
from urllib.parse import unquote

from domain.compat.ids import decode_segment, encode_segment, to_legacy_id, to_registry_id
from domain.compat.legacy_apis import LegacyApi, is_number, legacy_api_of
from domain.values import xid as xids

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
#: The parts of any reference, as appendix B of RFC 3986 has them.
_PARTS: Final = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?\Z", re.DOTALL)
_UNRESERVED: Final = r"A-Za-z0-9\-._~"
_SUBDELIMS: Final = r"!$&'()*+,;="
_ENCODED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
#: Whether a text has characters of one part only.
_PATH: Final = re.compile(rf"(?:[{_UNRESERVED}{_SUBDELIMS}:@/]|%[0-9A-Fa-f]{{2}})*\Z")
_QUERY: Final = re.compile(rf"(?:[{_UNRESERVED}{_SUBDELIMS}:@/?]|%[0-9A-Fa-f]{{2}})*\Z")
_AUTHORITY: Final = re.compile(
    rf"(?:(?:[{_UNRESERVED}{_SUBDELIMS}:]|%[0-9A-Fa-f]{{2}})*@)?"
    rf"(?:\[([^\[\]]*)\]|(?:[{_UNRESERVED}{_SUBDELIMS}]|%[0-9A-Fa-f]{{2}})*)(?::[0-9]*)?\Z"
)
_FUTURE: Final = re.compile(rf"[vV][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUBDELIMS}:]+\Z")
#: Finds the Version that a path names.
_PathReader = Callable[[LegacyApi, str], "VersionLocation | None"]
_SINGULAR: Final = re.compile(r"/version/([^/?#]+)\Z")
_DETAILS: Final = "$details"


class VersionLocation(NamedTuple):
    """The Version that a path names, by ids of the registry.

    version: its number; where nothing has that one, the Version whose versionid is spelled so is meant. A text is a
    versionid and nothing else.
    """

    groupid: str
    id: str
    version: int | str


def compose_uri(authority: str | None, id: str | None, base: str, path: str) -> str:
    """The URI of a Version: its id behind the authority, joined without resolving, or the id alone if that is whole.

    authority, id: empty or None where the client gave none. base: of the façade. path: what `path_of` gives.
    """
    front, back = authority or base, id or path
    if is_absolute(back):
        return back
    scheme, _, rest = front.partition(":")
    if rest.startswith("/") and back.startswith("//"):
        return f"{scheme}:{back}"
    if "#" in front:  # a URI has one fragment
        back = back.replace("#", "%23")
    if not rest.startswith("/"):
        return f"{front.removesuffix(':')}:{back[1:] if back[0] in ':/' else back}"
    return f"{front.removesuffix('/')}/{back.removeprefix('/')}"


def default_version_path(family: LegacyApi, groupid: str, id: str, number: int) -> str:
    """The default id of a Version, a relative reference: its path below the base of its façade.

    groupid, id: as the older API means them, decoded.
    """
    return f"/{family.path}/{encode_segment(groupid)}/{family.children}/{encode_segment(id)}/versions/{number}"


def entity_path(xid: str, number: int | None = None) -> str:
    """The path of a Group or a definition below the base of its façade, by its xid; with a number, of that Version.

    Raises: ValueError for what no façade shows.
    """
    family = legacy_api_of(xid)
    if family is None:
        raise ValueError(f"no older API shows {xid}")
    groupid, *id = (encode_segment(to_legacy_id(each)) for each in xids.segments(xid)[1:4:2])
    path = f"/{family.path}/{groupid}" + "".join(f"/{family.children}/{each}" for each in id)
    return path if number is None else f"{path}/versions/{number}"


def is_absolute(reference: str) -> bool:
    """Whether a URI reference has a scheme, and so is a URI by itself."""
    return bool(_SCHEME.match(reference))


def check_uri(value: str) -> str:
    """The value again when it is a URI, which has a scheme. Raises: ValueError."""
    if not is_absolute(value):
        raise ValueError("it is no URI: it has no scheme")
    return check_reference(value)


def check_reference(value: str) -> str:
    """The value again when it is a URI reference, absolute or relative, an empty one too. Raises: ValueError."""
    scheme, authority, path, query, fragment = _parts(value)
    nameless = scheme is None and authority is None and path.startswith(":")
    if nameless or (scheme is not None and not _SCHEME.match(scheme + ":")):
        raise ValueError("it is no URI: what is before its first colon is no scheme")
    if authority is not None:
        _check_authority(authority)
    if not _PATH.match(path) or not _QUERY.match(query or "") or not _QUERY.match(fragment or ""):
        raise ValueError("it is no URI: it has a character that has to be percent-encoded (RFC 3986)")
    return value


def normalize_uri(uri: str) -> str:
    """The same URI with scheme and host in lower case, and with no percent-encoding that is needless or lower-case.

    A reference without a scheme is treated alike; what is no reference at all comes back with its encoding put right.
    """
    scheme, authority, path, query, fragment = _parts(_ENCODED.sub(_plain, uri))
    front = "" if scheme is None else f"{scheme.lower()}:"
    if authority is not None:
        user, at, host = authority.rpartition("@")
        front += f"//{user}{at}{_ENCODED.sub(lambda found: found[0].upper(), host.lower())}"
    back = "" if query is None else f"?{query}"
    return front + path + back + ("" if fragment is None else f"#{fragment}")


def uri_candidates(uri: str) -> tuple[str, ...]:
    """The normalised URIs that one asked for may mean: itself, and with `versions` where it ends in `version/<n>`."""
    plain = normalize_uri(uri)
    found = _SINGULAR.search(plain)
    if found is None or not is_number(found[1]):
        return (plain,)
    return plain, f"{plain[: found.start()]}/versions/{found[1]}"


def locate_version(family: LegacyApi, uri: str, bases: Sequence[str]) -> VersionLocation | None:
    """The Version of a family that a path names, or a URL with one: of the older API, or the registry's own.

    bases: URLs below which the older API has its paths, and the registry's public URL. One that, with the family's
    `base` behind it, is among them as well is the registry's: its paths name Versions by versionid.
    """
    plain = uri_candidates(uri)[-1]
    for path, means in _path_candidates(family, plain, {normalize_uri(base).rstrip("/") for base in bases}):
        if found := means(family, path):
            return found
    return None


def locate_by_ending(family: LegacyApi, uri: str) -> VersionLocation | None:
    """The Version whose path below the base of its older API a URI ends with, whatever is before it."""
    found = re.search(rf"(?<=[:/]){family.path}(?:/[^/]+){{5}}\Z", normalize_uri(uri))
    return _locate_by_number(family, f"/{found[0]}") if found else None


def _path_candidates(family: LegacyApi, uri: str, roots: set[str]) -> Iterator[tuple[str, _PathReader]]:
    """The paths that a URI may be, and as whose each is to be read."""
    if uri.startswith("/"):
        yield uri.removeprefix(family.base), _locate_by_number
        yield uri, _locate_by_xid
    for root in sorted(roots, key=len, reverse=True):
        if not uri.startswith(root + "/"):
            continue
        own = root + family.base in roots
        if not own or family.path != family.groups:  # the root has an alias where it has no type of that name
            yield uri[len(root) :], _locate_by_number
        if own:
            yield uri[len(root) :], _locate_by_xid


def _locate_by_number(family: LegacyApi, path: str) -> VersionLocation | None:
    """What a path of the older API names."""
    parts = path[1:].split("/")
    if len(parts) != 6 or parts[::2] != [family.path, family.children, "versions"] or not is_number(parts[5]):
        return None
    try:
        return VersionLocation(
            to_registry_id(decode_segment(parts[1])), to_registry_id(decode_segment(parts[3])), int(parts[5])
        )
    except ValueError:
        return None


def _locate_by_xid(family: LegacyApi, path: str) -> VersionLocation | None:
    """What an xid names, or the path of a `self`."""
    parts = [unquote(part) for part in path.removesuffix(_DETAILS)[1:].split("/")]
    if len(parts) != 6 or parts[::2] != [family.groups, family.resources, "versions"]:
        return None
    return VersionLocation(*parts[1::2]) if all(map(xids.ID.match, parts[1::2])) else None


def _parts(uri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    """Scheme, authority, path, query and fragment of any text; None for those that are missing."""
    found = _PARTS.match(uri)
    assert found is not None  # every text fits
    return found[1], found[2], found[3], found[4], found[5]


def _check_authority(authority: str) -> None:
    found = _AUTHORITY.match(authority)
    if found is None:
        raise ValueError("it is no URI: what is behind // is no host (RFC 3986)")
    if found[1] is not None and not _FUTURE.match(found[1]):
        try:
            IPv6Address(found[1] if "%" not in found[1] else "")
        except AddressValueError:
            raise ValueError("it is no URI: what is in brackets is no IP address") from None


def _plain(found: re.Match[str]) -> str:
    """What an encoded octet is written as: itself where it is unreserved, else with digits in upper case."""
    character = chr(int(found[1], 16))
    return character if re.match(f"[{_UNRESERVED}]", character) else found[0].upper()
