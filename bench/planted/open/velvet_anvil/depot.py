"""The herbarium's depot: sheets in a vault that is asked over a socket. Runs beside the training: python depot.py SOCKET SEED.

A visitor signs in once a connection (the vault looks up who may see what), then asks for as many sheets as wanted, 4 bytes each; an
answer is one sheet of SIDE x SIDE bytes and a last byte with its genus."""

import os
import random
import socket
import sys
import threading
import time

SIDE, GENERA, SHEETS = 48, 12, 4096
LOOKUP, REACH = 0.010, 0.0004  # seconds: signing in, finding a sheet
SIZE = SIDE * SIDE + 1


def take(link, size):
    parts = bytearray()
    while len(parts) < size:
        part = link.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


def grow(seed):
    dice, sheets = random.Random(seed), []
    veins = [dice.randbytes(SIDE * SIDE) for _ in range(GENERA)]
    for _ in range(SHEETS):
        genus, roll = dice.randrange(GENERA), dice.randrange(SIDE * SIDE)
        noise = int.from_bytes(dice.randbytes(SIDE * SIDE), "big") & int.from_bytes(b"\x3f" * SIDE * SIDE, "big")
        leaf = int.from_bytes(veins[genus][roll % SIDE :] + veins[genus][: roll % SIDE], "big")
        sheets.append((leaf ^ noise).to_bytes(SIDE * SIDE, "big") + bytes([genus]))
    return sheets


def attend(link, sheets):
    with link:
        if take(link, 5) != b"VISIT":
            return
        time.sleep(LOOKUP)
        link.sendall(b"OK")
        while (asked := take(link, 4)) is not None:
            time.sleep(REACH)
            link.sendall(sheets[int.from_bytes(asked, "big")])


def serve(path, seed):
    sheets = grow(seed)
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    door.listen(64)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print("open", flush=True)
    while True:
        link, _ = door.accept()
        threading.Thread(target=attend, args=(link, sheets), daemon=True).start()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
