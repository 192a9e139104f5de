"""What goes over the line: a head (kind, length of the body), then the body."""

import struct

HEAD = struct.Struct("<HI")
CUT, BYE = 1, 2


def receive(sock, count):
    data = bytearray(count)
    view, have = memoryview(data), 0
    while have < count:
        got = sock.recv_into(view[have:])
        if not got:
            raise ConnectionError("the other side is gone")
        have += got
    return data
