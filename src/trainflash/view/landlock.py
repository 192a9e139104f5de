"""Confines writing by Landlock; standard library only, runs in the child. Source: kernel, Documentation/userspace-api/landlock.rst.

Only rights to write are handled, so that reading costs nothing. It does not stop chmod, chown, utime and setxattr; truncate only
from ABI 3; at ABI 1 a rename between folders is refused (EXDEV).
"""

import ctypes
import os
import stat

import syscalls

_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGES = sum(1 << bit for bit in range(4, 13))  # remove and make of every type
_NODES = 1 << 6 | 1 << 11  # make device nodes: allowed nowhere
_VERSION, _RULE_PATH_BENEATH = 1, 1


class _Ruleset(ctypes.Structure):
    _fields_ = [("handled_access_fs", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def abi():
    """The version of Landlock that runs here. Raises `OSError` where there is none."""
    return syscalls.syscall("landlock", syscalls.LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION))


def confine(writable):
    """From here on, this process and all that it starts write only beneath the paths of `writable`. Raises `OSError`."""
    version = abi()
    handled = _WRITE_FILE | _CHANGES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = _Ruleset(handled)
    size = ctypes.c_size_t(ctypes.sizeof(rules))
    ruleset = syscalls.syscall("landlock rules", syscalls.LANDLOCK_CREATE, ctypes.byref(rules), size, ctypes.c_uint(0))
    try:
        for path in writable:
            _allow(ruleset, path, handled & ~_NODES)
        syscalls.drop_capabilities()
        syscalls.no_new_privileges()
        syscalls.syscall("landlock", syscalls.LANDLOCK_RESTRICT, ruleset, ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _allow(ruleset, path, handled):
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule = _PathBeneath(handled if folder else handled & (_WRITE_FILE | _TRUNCATE), descriptor)
        pointer = ctypes.byref(rule)
        syscalls.syscall(f"landlock {path}", syscalls.LANDLOCK_ADD, ruleset, _RULE_PATH_BENEATH, pointer, ctypes.c_uint(0))
    finally:
        os.close(descriptor)
