"""XML Schema: `xsd/1.0`, `xsd/1.1` and the same as `xmlschema/…`.

Documents are XML without a document type declaration. Imported and included schemas are never read; names from them are
opaque, each equal to itself only (see `stubs.py`). Begin with `model.py`, then `build_schema.py` and `comparison.py`.
Spec: XML Schema 1.0 and 1.1, parts 1 and 2. Rules SC-10, SC-14, SC-16, SC-36.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from xmlschema import XMLResource, XMLSchema10, XMLSchema11, XMLSchemaException
from xmlschema.loaders import SchemaLoader
from xmlschema.names import XSD_IMPORT

from annals.domain.formats.contract import MAX_INCOMPATIBILITIES, Incompatibility, InvalidDocument, NewerSide
from annals.domain.formats.xsd.build_schema import build_schema
from annals.domain.formats.xsd.canonical_form import canonical_form as normal_form
from annals.domain.formats.xsd.comparison import XsdComparison
from annals.domain.formats.xsd.determinism import install_model_check
from annals.domain.formats.xsd.model import XsdDocument
from annals.domain.formats.xsd.stubs import stub_schemas
from annals.domain.formats.xsd.xml_tree import XS, decode_xml, location_at, parse_xml

__all__ = ["XsdDocument", "canonical_form", "incompatibilities", "parse"]

_ROOT_TAG: Final = f"{{{XS}}}schema"

install_model_check()


def parse(document: bytes, name: str) -> XsdDocument:
    """The schema in a document, checked for being well-formed and valid in the declared version of XSD.

    About 5 ms for 2 kB, linear in the length. Raises: InvalidDocument, with the line.
    """
    text = decode_xml(document)
    root = parse_xml(text)
    if root.tag != _ROOT_TAG:
        raise InvalidDocument(f"the root element is not xs:schema of {XS}", location_at(text, root.start))
    resource = None
    offsets: dict[int, int] = {}
    try:
        resource = XMLResource(text.encode(), defuse="always", allow="none")
        # Both trees are of the same document, so they have their elements in the same order.
        pairs = zip(resource.root.iter(), root.iter(), strict=True)
        offsets = {id(element): node.start for element, node in pairs}
        version = XMLSchema11 if name.rpartition("/")[2].startswith("1.1") else XMLSchema10
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            schema = version(
                resource, loader_class=_stub_loader(stub_schemas(root, text)), defuse="always", allow="none"
            )
            return build_schema(schema, text, offsets)
    except InvalidDocument:
        raise
    except RecursionError:
        raise InvalidDocument("the document nests its parts too deeply") from None
    except Exception as error:  # the library may raise anything for untrusted documents
        offset = offsets.get(id(getattr(error, "elem", None)))
        raise InvalidDocument(
            f"the document is not a valid schema: {_error_text(error)}", location_at(text, offset)
        ) from None


def canonical_form(parsed: XsdDocument) -> bytes:
    """The schema in a normal form of this project, itself a schema; see `canonical_form.canonical_form`."""
    return normal_form(parse_xml(parsed.text))


def incompatibilities(
    reader: XsdDocument,
    writer: XsdDocument,
    _newer: NewerSide | None = None,
    /,
    *,
    limit: int = MAX_INCOMPATIBILITIES,
) -> Sequence[Incompatibility]:
    """Why a document valid for one schema may be invalid for the other, with lines in both.

    Under 1 ms for schemas of 2 kB with small differences. The cost is bounded for content models that are hard to
    compare; what is undecided at the bound is reported as an incompatibility of its own.
    """
    return XsdComparison(reader, writer, limit).incompatibilities()


def _stub_loader(stub_texts: Mapping[str, str]) -> type[SchemaLoader]:
    """A loader that reads no schema locations; it uses stub schemas for imports and includes."""

    class Loader(SchemaLoader):
        def load_declared_schemas(self, schema: Any, other_sources: Any = None) -> None:
            for node in schema.source.root:
                if node.tag == XSD_IMPORT:
                    namespace = node.get("namespace", "").strip()
                    if namespace == schema.target_namespace:
                        schema.parse_error("an import has to name another namespace", node)
                    schema.imported_namespaces.append(namespace)
            if schema is self.maps.validator:
                for namespace, text in stub_texts.items():
                    schema.add_schema(text, namespace)

    return Loader


def _error_text(error: Exception) -> str:
    text = getattr(error, "message", None) or getattr(error, "reason", None) or error
    kind = "" if isinstance(error, XMLSchemaException) else f"{type(error).__name__} "
    return (kind + str(text).strip().partition("\n")[0].rstrip(":."))[:500]
