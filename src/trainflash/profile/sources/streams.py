"""Files → streams of bytes: plain or gzip by content, not by name; a gzip file that is cut or damaged gives what comes before that."""

from __future__ import annotations

import codecs
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

CHUNK = 2 << 20
_GZIP = b"\x1f\x8b"
_PACKED = 1 << 20  # bytes of gzip taken at once


class Stream:
    """Iterates over chunks of uncompressed bytes; then `cut_short` holds why it ended before its end, if it did."""

    def __init__(self, file: BinaryIO, first: bytes = b"") -> None:
        self._file = file
        self._first = first or file.read(4)
        self.cut_short: list[str] = []

    @property
    def packed(self) -> bool:
        """Whether the file is gzip."""
        return self._first[:2] == _GZIP

    def __iter__(self) -> Iterator[bytes]:
        return self._unpacked() if self.packed else self._plain()

    def _plain(self) -> Iterator[bytes]:
        if self._first:
            yield self._first + self._file.read(CHUNK)
        while chunk := self._file.read(CHUNK):
            yield chunk

    def _unpacked(self) -> Iterator[bytes]:
        """Members of a gzip file one after the other; never more than a chunk at once, however well they pack."""
        unpacker = zlib.decompressobj(31)
        packed = self._first + self._file.read(_PACKED)
        try:
            while packed or not unpacker.eof:
                if unpacker.eof:
                    packed = packed.lstrip(b"\0") or self._file.read(_PACKED).lstrip(b"\0")
                    if packed[:2] != _GZIP:
                        return
                    unpacker = zlib.decompressobj(31)
                chunk = unpacker.decompress(packed, CHUNK)
                if chunk:
                    yield chunk
                packed = unpacker.unconsumed_tail or unpacker.unused_data or (b"" if unpacker.eof else self._file.read(_PACKED))
                if unpacker.eof and not packed:
                    packed = self._file.read(_PACKED)
                elif not packed and not unpacker.eof:
                    yield from self._rest(unpacker)
                    return
        except (zlib.error, EOFError) as fault:
            self.cut_short.append(f"the gzip stream is damaged: {fault}")

    def _rest(self, unpacker: zlib._Decompress) -> Iterator[bytes]:
        rest = unpacker.flush()
        if rest:
            yield rest
        if not unpacker.eof:
            self.cut_short.append("the gzip stream ends before its end")


def as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same text in UTF-8, whatever Unicode encoding JSON may have; what cannot be decoded is replaced."""
    chunks = iter(chunks)
    first = next(chunks, b"")
    encoding = json.detect_encoding(first[:4])
    if encoding.startswith("utf-8"):
        yield first
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in itertools.chain((first,), chunks):
        yield decoder.decode(chunk).encode("utf-8", "replace")
