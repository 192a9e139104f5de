"""Where a running program connects to: what no protection stops, and what an owner whose trackers are offline does not expect."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trainflash.launch import supervise

LOOK_EVERY_S = 1.0
SHOWN = 20
_OPEN = frozenset(("01", "02"))  # established, and asked for: include/net/tcp_states.h


class Connections:
    """Looks now and then at the TCP connections of a process tree; one that was shorter than a look is missed. Loopback does not count."""

    def __init__(self, tree: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._tree = tree
        self._clock = clock
        self._next_s = 0.0
        self._known: set[str] = set()  # sockets that were looked up already, ours or not
        self._seen: dict[str, None] = {}

    def look(self) -> None:
        """Cheap enough to be called in a waiting loop: processes are looked at only where the machine has a new connection."""
        now = self._clock()
        if now < self._next_s:
            return
        self._next_s = now + LOOK_EVERY_S
        remote = {inode: peer for inode, peer in _outward(self._tree) if inode not in self._known}
        if remote:
            self._known |= remote.keys()
            self._seen.update((remote[inode], None) for inode in _sockets(self._tree) if inode in remote)

    def seen(self) -> tuple[str, ...]:
        """`ADDRESS:PORT` of each, first seen first."""
        return tuple(self._seen)[:SHOWN]


def _outward(pid: int) -> list[tuple[str, str]]:
    """Inode and peer of each open TCP connection in the network namespace of `pid` that leaves the machine."""
    found = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                words = line.split()
                peer, port = words[2].split(":")
                address = _address(peer)
                if words[3] in _OPEN and not (address.is_loopback or address.is_unspecified):
                    shown = f"[{address}]" if address.version == 6 else str(address)
                    found.append((words[9], f"{shown}:{int(port, 16)}"))
    return found


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The kernel writes an address as words of the machine's own byte order."""
    data = b"".join(int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8))
    address = ipaddress.ip_address(data)
    return getattr(address, "ipv4_mapped", None) or address


def _sockets(tree: int) -> set[str]:
    """Inodes of all sockets that processes of the tree hold."""
    found = set()
    for pid in supervise.living(tree):
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    link = os.readlink(entry.path)
                    if link.startswith("socket:["):
                        found.add(link[8:-1])
    return found
