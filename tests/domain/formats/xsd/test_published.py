"""Published schemas, from installed packages and from Maven, are parsed, changed and compared."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from annals.domain.formats import xsd
from annals.domain.formats.contract import InvalidDocument
from tests.support.downloads.maven import jars

#: Packages that contain schemas: of W3C, SOAP, WSDL and XHTML; of XPath's functions; of test reports.
CARRIERS = ("xmlschema", "elementpath", "mypy")
#: Their files that are refused, and words of the reason.
REFUSED = {
    "schemas/XSD_1.0/XMLSchema.xsd": "document type",
    "schemas/XSD_1.0/datatypes.xsd": "root element",
    "schemas/XSD_1.1/XMLSchema.xsd": "document type",
    "schemas/XSD_1.1/datatypes.xsd": "document type",
    "schemas/XSD_1.1/xsd11-extra.xsd": "override",
    "schemas/XSI/XMLSchema-instance.xsd": "document type",
}


def carried() -> Iterator[tuple[str, Path]]:
    for carrier in CARRIERS:
        found = find_spec(carrier)
        if found is not None and found.origin is not None:
            home = Path(found.origin).parent
            yield from ((file.relative_to(home).as_posix(), file) for file in sorted(home.rglob("*.xsd")))


def check_evolution(document: bytes, version: str) -> None:
    """Checks a schema: parses it and its canonical form, and compares it with changed ones of known compatibility."""
    name = f"xsd/{version}"
    parsed = xsd.parse(document, name)
    canonical = xsd.canonical_form(parsed)
    again = xsd.parse(canonical, name)
    assert xsd.canonical_form(again) == canonical
    assert xsd.incompatibilities(again, parsed) == xsd.incompatibilities(parsed, again) == []
    more = xsd.parse(canonical.replace(b"</xs:schema>", b'<xs:element name="one-more"/></xs:schema>'), name)
    assert xsd.incompatibilities(more, parsed) == []
    assert [found.rule for found in xsd.incompatibilities(parsed, more)] == ["root-element-unknown"]
    if (start := canonical.find(b'<xs:enumeration value="')) >= 0:
        end = canonical.index(b">", start) + 1
        try:
            less = xsd.parse(canonical[:start] + canonical[end:], name)
        except InvalidDocument:  # the value is the default of an attribute or element
            return
        assert xsd.incompatibilities(parsed, less) == []
        assert {found.rule for found in xsd.incompatibilities(less, parsed)} <= {
            "enumeration-value-unknown",
            "type-changed",
        }


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(("name", "file"), list(carried()))
def test_schemas_of_installed_packages(name: str, file: Path, version: str) -> None:
    # SC-10, SC-36: published schemas are accepted and compared with changed ones
    if name in REFUSED:
        with pytest.raises(InvalidDocument, match=REFUSED[name]):
            xsd.parse(file.read_bytes(), f"xsd/{version}")
    else:
        check_evolution(file.read_bytes(), version)


def test_schemas_of_spring() -> None:
    # SC-10, SC-36: the schemas of Spring's beans, several releases of them
    (jar,) = jars("org.springframework:spring-beans:5.3.39@jar")
    with zipfile.ZipFile(jar) as archive:
        documents = [archive.read(name) for name in archive.namelist() if name.endswith(".xsd")]
    assert documents
    for document in documents:
        check_evolution(document, "1.0")
