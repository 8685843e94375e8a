"""The stored form of documents: each document is read back byte for byte, whatever its content."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from annals.commands.store.compression.document_compression import (
    MAX_PLAIN,
    compress_document,
    decompress_document,
    document_size,
)
from annals.commands.store.mapper import UnreadableEvent

LONG = b'{"type":"string"}' * 1000
#: Documents that look like the stored form of others.
FRAMES = (zstandard.compress(LONG), zstandard.compress(os.urandom(9999)), zstandard.FRAME_HEADER * 999)


def key(content: bytes) -> str:
    return sha256(content).hexdigest()


@pytest.mark.parametrize("content", [b"", b"a" * MAX_PLAIN, LONG, os.urandom(9999), *FRAMES, compress_document(LONG)])
def test_a_document_comes_back(content: bytes) -> None:
    assert decompress_document(key(content), compress_document(content)) == content
    assert decompress_document(key(content), content) == content  # as older programs stored it


@given(st.binary(max_size=20), st.integers(0, 300), st.booleans())
def test_any_bytes(content: bytes, times: int, starts_as_frame: bool) -> None:
    content = zstandard.FRAME_HEADER * starts_as_frame + content * times
    stored = compress_document(content)
    assert decompress_document(key(content), stored) == content
    assert len(stored) <= len(content)


def test_only_what_gets_shorter_is_a_frame() -> None:
    assert len(compress_document(LONG)) < len(LONG) / 99
    for content in (b"a" * MAX_PLAIN, os.urandom(9999)):
        assert compress_document(content) == content


def test_the_size_is_known_before_decompressing() -> None:
    assert document_size(compress_document(LONG)) == len(LONG)
    assert document_size(b"text") == 4


@pytest.mark.parametrize("stored", [None, 5, "text", compress_document(LONG)[:-1], zstandard.FRAME_HEADER + b"x"])
def test_a_damaged_document_is_not_read(stored: object) -> None:
    with pytest.raises(UnreadableEvent):
        decompress_document(key(LONG), stored)
