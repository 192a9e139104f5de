import os
import struct
import zlib
from pathlib import Path

import numpy as np


def png(pixels):
    """Bytes of a grey-scale PNG."""
    height, width = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


class Gallery:
    def __init__(self, folder, every):
        self.folder, self.every = Path(folder), every

    def show(self, step, originals, copies):
        if step % self.every:
            return
        both = np.stack([originals, copies], axis=1).reshape(-1, 8, 32, 32)[:8]
        sheet = both.transpose(0, 2, 1, 3).reshape(256, 256).clip(0, 1)
        (self.folder / f"copies_{step % 20:02d}.png").write_bytes(png((sheet.repeat(2, 0).repeat(2, 1) * 255).astype(np.uint8)))


SHOW_EVERY = 100 if os.environ.get("PLANTED_FIX") == "1" else 1
