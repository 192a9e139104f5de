"""What comes out of a stream is what `text` makes of the whole, however the bytes come; nothing is held without bound."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_kinds import SECRETS, line_of, made

from trainflash import redact

KEY = ["-----BEGIN OPENSSH PRIVATE KEY-----", *(made(70) for _ in range(20)), "-----END OPENSSH PRIVATE KEY-----"]
PRINTED = "\n".join(
    line
    for number, kind in enumerate(SECRETS)
    for line in (f"epoch {number} loss=0.{number}337 \r {number}% 12.3 it/s", line_of(kind)[0], *(KEY if number % 10 == 3 else ()))
)


def streamed(data: bytes, sizes: list[int]) -> bytes:
    """`data` in parts of these sizes, over and over."""
    stream, at, number, shown = redact.Stream(), 0, 0, b""
    while at < len(data):
        size = sizes[number % len(sizes)]
        shown += stream.feed(data[at : at + size])
        at, number = at + size, number + 1
    return shown + stream.close()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_parts_of_any_size_give_what_the_whole_gives(sizes: list[int]) -> None:
    assert streamed(PRINTED.encode(), sizes).decode() == redact.text(PRINTED)


@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret_comes_out_whatever_its_place_in_the_parts(kind: str) -> None:
    line, secret = line_of(kind)
    data = f"before\n{line}\nafter\n".encode()
    for cut in range(1, len(data)):
        shown = streamed(data, [cut, len(data)])
        assert secret.encode() not in shown and shown.endswith(b"\nafter\n"), cut


def test_a_key_that_comes_line_by_line_is_hidden_and_what_follows_is_shown() -> None:
    stream = redact.Stream()
    shown = b"".join(stream.feed(f"{line}\n".encode()) for line in ("before", *KEY, "after"))
    assert not any(line.encode() in shown for line in KEY[1:-1])
    assert shown.startswith(b"before\n") and shown.endswith(b"\nafter\n") and shown.count(b"\n") == len(KEY) + 2


def test_a_key_whose_end_never_comes_does_not_hide_the_program_for_ever() -> None:
    stream = redact.Stream()
    stream.feed(f"{KEY[0]}\n".encode())
    shown = [stream.feed(b"an ordinary line\n") for _ in range(3 * redact._BLOCK_LINES)]
    assert b"ordinary" not in b"".join(shown[:500])
    assert shown[-1] == b"an ordinary line\n"


@settings(deadline=None)
@given(st.binary(max_size=3000), st.lists(st.integers(1, 500), min_size=1, max_size=5))
def test_bytes_that_are_no_text_pass_unchanged(data: bytes, sizes: list[int]) -> None:
    whole = redact.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    assert whole != data or streamed(data, sizes) == data


@pytest.mark.parametrize("place", range(-6, 7))
def test_a_secret_in_a_line_without_end_is_found_where_the_line_must_be_cut(place: int) -> None:
    """At each place around the first cut; nothing of the rest is lost."""
    line, secret = line_of("hugging face")
    cut = redact.HELD_BYTES - redact._AROUND
    before = "x " * ((cut + place * 8 - 20) // 2)
    shown = streamed(f"{before}{line} {'y ' * redact.HELD_BYTES}".encode(), [65536])
    assert secret.encode() not in shown and redact.REDACTED.encode() in shown
    assert shown.count(b"y ") == redact.HELD_BYTES and shown.count(b"x ") == len(before) // 2


def test_what_is_held_is_bounded() -> None:
    stream, chance = redact.Stream(), random.Random(1)
    for _ in range(200):
        stream.feed(chance.randbytes(50_000).replace(b"\n", b"-").replace(b"\r", b"-"))
        assert sys.getsizeof(stream._held) <= redact.HELD_BYTES + 100


def test_ordinary_output_takes_little_time() -> None:
    """The hints keep nearly all patterns away from it; without them it takes about ten times as long."""
    log = "".join(f"epoch {n} step {n * 7} loss={n * 0.1337:.6f} lr=0.001 /data/img_{n}.png 123.4 it/s\n" for n in range(5000))
    assert not [hints for hints, _ in redact._SHAPE_PATTERNS if any(hint in log for hint in hints)]
    assert redact.text(log) == log


@pytest.mark.parametrize("kind", SECRETS)
def test_no_hint_keeps_a_pattern_away_from_its_secret(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line, _ = line_of(kind)
    with_hints = redact.text(line)
    monkeypatch.setattr(redact, "_SHAPE_PATTERNS", tuple(([""], pattern) for _, pattern in redact._SHAPE_PATTERNS))
    monkeypatch.setattr(redact, "_NAME_HINTS", ("",))
    assert redact.text(line) == with_hints
