"""The parent of one program: no process of its tree outlives the launcher or the run. Standard library only.

Run as `python -I -S supervise.py SOCKET_FD -- ARGV…`, one for each program. It is the subreaper of everything the program
starts, so daemons and ranks in sessions of their own stay its descendants. It says `exit CODE` on the socket when the program is over and
no process of its tree is left. `kill` on the socket, the end of the socket (the launcher died, however) or SIGTERM end the whole
tree. Its functions on process trees are used by the launcher too.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINGER_S = 2.0  # what a program leaves behind (a logger's flusher, a resource tracker) may take so long to end by itself
KILL_S = 20.0  # a process in an uninterruptible wait cannot be ended; give up and say so
FREEZE_S = 2.0
CLIENT_S = 8.0  # srun tells every node to end its tasks, which takes one round over the network
# Their ranks may be children of a daemon, and end only when these are asked to; killed, they could tell nobody.
CLIENTS = frozenset({"srun", "mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "mpirun.openmpi", "mpiexec.openmpi"})
POLL_S = 0.002

Stat = tuple[int, str, float]  # parent, state letter, CPU seconds with those of reaped children


def process_stat(pid: int) -> Stat | None:
    """Parent, state and CPU seconds of a process; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    ticks = sum(int(field) for field in fields[11:15])
    return int(fields[1]), fields[0].decode(), ticks / os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> dict[int, Stat]:
    """All processes below `root`, zombies too, parents before children. Walks /proc: sessions and groups do not matter."""
    stats = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := process_stat(int(name)))}
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, Stat] = {}
    queue = [root]
    while queue:
        for pid in sorted(children.get(queue.pop(0), ())):
            if pid not in found:
                found[pid] = stats[pid]
                queue.append(pid)
    return found


def living(root: int) -> list[int]:
    """Descendants of `root` that are not zombies, parents first."""
    return [pid for pid, (_, state, _) in descendants(root).items() if state not in "ZX"]


def signal_each(pids: list[int], number: int) -> None:
    """Send a signal to each process; one that is gone is fine."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def freeze(root: int) -> bool:
    """Stop all processes below `root`; a child forked meanwhile is found by walking again. False when not all stopped in time."""
    deadline = time.monotonic() + FREEZE_S
    while time.monotonic() < deadline:
        moving = [pid for pid, (_, state, _) in descendants(root).items() if state not in "TtZX"]
        if not moving:
            return True
        signal_each(moving, signal.SIGSTOP)
        time.sleep(POLL_S / 4)
    return False


def thaw(root: int) -> None:
    """Let all processes below `root` go on, children first, so that a parent finds its children awake."""
    signal_each(list(reversed(living(root))), signal.SIGCONT)


def kill(root: int, reap: bool = False) -> list[int]:
    """End all processes below `root`, stopped ones too; returns those that cannot be ended."""
    _ask_clients(root, reap)
    deadline = time.monotonic() + KILL_S
    while True:
        left = living(root)
        if not left or time.monotonic() > deadline:
            return left
        signal_each(left, signal.SIGKILL)
        signal_each(left, signal.SIGCONT)
        if reap:
            _reap({})
        time.sleep(POLL_S)


def _ask_clients(root: int, reap: bool) -> None:
    """Let the clients of launching daemons end what they had started."""
    clients = [pid for pid in living(root) if _name(pid) in CLIENTS]
    signal_each(clients, signal.SIGTERM)
    if clients:
        thaw(root)
    deadline = time.monotonic() + CLIENT_S
    while clients and set(clients) & set(living(root)) and time.monotonic() < deadline:
        if reap:
            _reap({})
        time.sleep(POLL_S * 10)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().strip().decode("utf-8", "replace")
    except OSError:
        return ""


def set_process_option(option: int, value: int) -> None:
    """`prctl(option, value)`; an old kernel's refusal is ignored, the walk of the tree still works."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _reap(codes: dict[int, int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        codes[pid] = os.waitstatus_to_exitcode(status)


def _spawn(argv: list[str]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()  # a program that signals its own group must not reach the supervisor
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            os.execvp(argv[0], argv)
    except OSError as bad:
        os.write(2, f"{argv[0]}: {bad.strerror}\n".encode())
    finally:
        os._exit(127)


def _wait(control: socket.socket, wakeup: int, program: int) -> int | None:
    """The program's exit code; None when it must be killed."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    codes: dict[int, int] = {}
    while program not in codes:
        ready = {fd for fd, _ in poll.poll(1000)}
        if control.fileno() in ready:  # "kill", or the launcher is gone
            return None
        if wakeup in ready and bytes([signal.SIGTERM]) in os.read(wakeup, 4096):
            return None
        _reap(codes)
    return codes[program]


def _linger(control: socket.socket) -> None:
    deadline = time.monotonic() + LINGER_S
    while living(os.getpid()) and time.monotonic() < deadline:
        if select.select([control], [], [], POLL_S * 5)[0]:
            return
        _reap({})


def main(arguments: list[str]) -> int:
    """Run the program behind `--` and stay until its whole tree is gone."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)
    code = _wait(control, read_end, _spawn(arguments[2:]))
    if code is not None:
        _linger(control)
    stuck = kill(os.getpid(), reap=True)
    try:
        control.sendall(f"exit {-signal.SIGKILL if code is None else code} {len(stuck)}\n".encode())
    except OSError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
