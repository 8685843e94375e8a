"""The Protobuf documents that every schema may import without a reference, besides those of the compiler.

They are Google's common types, and Confluent's own: annotations of fields, decimals and variants. Rule CSR-510.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

_DECIMAL: Final = """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""
_CONFLUENT: Final[Mapping[str, str]] = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": _DECIMAL,
    # Confluent's clients for Python and Node.js have had this path in their generated code.
    "confluent/types/decimal.proto": _DECIMAL,
    "confluent/type/variant.proto": """syntax = "proto3";
package confluent.type;
message Variant { bytes metadata = 1; bytes value = 2; }
""",
}


def builtin_documents(texts: Iterable[str]) -> dict[str, str]:
    """Those of the documents that the texts mention, by the path that an import gives."""
    read = tuple(texts)
    return {path: text for path, text in _documents().items() if any(path in each for each in read)}


@cache
def _documents() -> Mapping[str, str]:
    types = [file for file in files("google.type").iterdir() if file.name.endswith(".proto")]
    return {**_CONFLUENT, **{f"google/type/{file.name}": file.read_text(encoding="utf-8") for file in types}}
