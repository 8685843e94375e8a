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

    def override_with(self, overrides: d.FeatureSet) -> Features:
        """These features, overridden by those that `overrides` sets."""
        return Features(
            overrides.field_presence or self.presence,
            overrides.enum_type or self.enum,
            overrides.repeated_field_encoding or self.repeated,
            overrides.message_encoding or self.message,
        )


_LENGTH_PREFIXED: Final = d.FeatureSet.LENGTH_PREFIXED
_PROTO2_FEATURES: Final = Features(d.FeatureSet.EXPLICIT, d.FeatureSet.CLOSED, d.FeatureSet.EXPANDED, _LENGTH_PREFIXED)
_PROTO3_FEATURES: Final = Features(d.FeatureSet.IMPLICIT, d.FeatureSet.OPEN, d.FeatureSet.PACKED, _LENGTH_PREFIXED)
_EDITION_FEATURES: Final = Features(d.FeatureSet.EXPLICIT, d.FeatureSet.OPEN, d.FeatureSet.PACKED, _LENGTH_PREFIXED)


def features_of_file(file: d.FileDescriptorProto) -> Features:
    """The features that apply in a document by default."""
    if file.syntax == "editions":
        return _EDITION_FEATURES.override_with(file.options.features)
    return _PROTO3_FEATURES if file.syntax == "proto3" else _PROTO2_FEATURES
