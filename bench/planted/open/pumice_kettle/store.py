"""The excavation's drawing store: keeps the digitised sherd profiles in memory and hands them out by number.

python store.py SHERDS POINTS SEED      (prints its port, then serves until the line is cut)
"""

import socket
import sys

import numpy as np

from wire import Line


def profiles(count, points, seed):
    """Radius over height; a dozen vessel forms, each sherd a worn variant of one."""
    rng = np.random.default_rng(seed)
    height = np.linspace(0, 1, points)
    order = np.arange(1, 9)
    waves = np.sin(np.pi * order[:, None] * height)
    forms = rng.normal(0, 1, (12, 8)) / order
    which = rng.integers(0, 12, count)
    coefficient = forms[which] + rng.normal(0, 0.15, (count, 8)) / order
    wear = rng.normal(0, 0.02, (count, points)).cumsum(1) * 0.2
    return (coefficient @ waves + wear).astype(np.float32)


def main():
    sherds = profiles(*map(int, sys.argv[1:4]))
    door = socket.create_server(("127.0.0.1", 0))
    print(door.getsockname()[1], flush=True)
    sock, _ = door.accept()
    line = Line(sock)
    while True:
        try:
            kind, body = line.receive()
        except (EOFError, ConnectionError):
            return
        if kind == b"size":
            line.send(b"size", np.array(sherds.shape, np.int64).tobytes())
        elif kind == b"draw":
            line.send(b"draw", sherds[np.frombuffer(body, np.int64)].tobytes())


if __name__ == "__main__":
    main()
