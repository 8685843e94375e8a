"""Lines of a stream of chunks."""

from __future__ import annotations

from time import thread_time

from hypothesis import given
from hypothesis import strategies as st

from annals.domain.values.line_buffer import LineBuffer


@given(st.lists(st.text("ab\n").map(str.encode)))
def test_lines_do_not_depend_on_the_chunks(chunks: list[bytes]) -> None:
    buffer = LineBuffer()
    found = [line for chunk in chunks for line in buffer.add(chunk)]
    assert len(buffer) == len(buffer.end())
    assert [*found, buffer.end()] == b"".join(chunks).split(b"\n")


def test_a_long_line_takes_time_in_proportion() -> None:
    # LEG-910: 200 MB in chunks of 64 KiB; copying what came before with each chunk would move 300 GB
    buffer, chunk = LineBuffer(), b"x" * (1 << 16)
    started = thread_time()
    for _ in range(3200):
        assert buffer.add(chunk) == []
    [line] = buffer.add(b"\n")
    assert len(line) == 3200 << 16
    assert thread_time() - started < 5
