"""One marked block in a file that the owner may have; everything around it stays byte for byte."""

from __future__ import annotations

from pathlib import PurePosixPath

from trainflash.errors import UsageError

BEGIN, END = b"<!-- trainflash:begin -->", b"<!-- trainflash:end -->"
_MARKS = {".toml": (b"# trainflash:begin", b"# trainflash:end")}


def marks(relative: str) -> tuple[bytes, bytes]:
    """How the block begins and ends in a file of that name: a comment of its language."""
    return _MARKS.get(PurePosixPath(relative).suffix, (BEGIN, END))


def block(body: str, relative: str) -> bytes:
    """The whole block, line ends of Unix."""
    begin, end = marks(relative)
    return begin + b"\n" + body.encode() + end + b"\n"


def put(old: bytes, body: str, relative: str) -> bytes:
    """`old` with the block in place of an earlier one, else behind everything. Raises `UsageError` for damaged marks."""
    before, there, after = split(old, relative)
    newline = b"\r\n" if b"\r\n" in old else b"\n"
    wanted = block(body, relative).replace(b"\n", newline)
    if there is not None:
        return before + wanted + after
    return old + newline + wanted if old else wanted


def take(content: bytes, relative: str) -> bytes | None:
    """`content` without the block, as it was before `put`; None where there is no block."""
    before, there, after = split(content, relative)
    if there is None:
        return None
    if before:  # the one line end that `put` set between the owner's text and the block
        before = before[:-2] if before.endswith(b"\r\n") else before[:-1]
    return before + after


def split(content: bytes, relative: str) -> tuple[bytes, bytes | None, bytes]:
    """Content before, in and after our block; the block is None where there is none. Raises `UsageError` for damaged marks."""
    begin, end = marks(relative)
    begins, ends = content.count(begin), content.count(end)
    if begins == ends == 0:
        return content, None, b""
    start, stop = content.find(begin), content.find(end)
    if (begins, ends) != (1, 1) or stop < start:
        mend = f"remove what stands from {begin.decode()} on, then try again"
        raise UsageError(f"{relative}: the marks of trainflash's block are damaged", mend)
    stop += len(end)
    stop += 2 if content[stop : stop + 2] == b"\r\n" else int(content[stop : stop + 1] == b"\n")
    return content[:start], content[start:stop], content[stop:]
