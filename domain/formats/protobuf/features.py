"""Features of the editions: how fields and enums are encoded, inherited from the document down to the field.

Proto2 and proto3 count as editions with fixed features: their keywords set features, and their defaults are those of
the features.
Spec: Protobuf documentation, "Feature Settings for Editions".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from google.protobuf import descriptor_pb2 as d


class Features(NamedTuple):
    """The features that change the encoding, as numbers of their enums in descriptor.proto."""

    presence: int
    enum: int
    repeated: int
    message: int

    def override_with(self, said: d.FeatureSet) -> Features:
        """These features, overridden by those that `said` sets."""
        return Features(
            said.field_presence or self.presence,
            said.enum_type or self.enum,
            said.repeated_field_encoding or self.repeated,
            said.message_encoding or self.message,
        )


_PREFIXED: Final = d.FeatureSet.LENGTH_PREFIXED
_PROTO2: Final = Features(d.FeatureSet.EXPLICIT, d.FeatureSet.CLOSED, d.FeatureSet.EXPANDED, _PREFIXED)
_PROTO3: Final = Features(d.FeatureSet.IMPLICIT, d.FeatureSet.OPEN, d.FeatureSet.PACKED, _PREFIXED)
_EDITIONS: Final = Features(d.FeatureSet.EXPLICIT, d.FeatureSet.OPEN, d.FeatureSet.PACKED, _PREFIXED)


def features_of_file(file: d.FileDescriptorProto) -> Features:
    """The features that apply in a document by default."""
    if file.syntax == "editions":
        return _EDITIONS.override_with(file.options.features)
    return _PROTO3 if file.syntax == "proto3" else _PROTO2
