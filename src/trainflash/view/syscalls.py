"""The kernel calls of a view that Python does not have; standard library only, loaded in the child before the program.

Numbers above 423 are equal on all architectures. Each call raises `OSError` with what it was for.
"""

import ctypes
import os

OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _CLOEXEC = 1, os.O_CLOEXEC
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6
_MOVE_FROM_FD = 4
_RDONLY = 1
_PDEATHSIG, _NO_NEW_PRIVS, _CAPBSET_DROP, _CAP_AMBIENT, _CAP_AMBIENT_LOWER = 1, 38, 24, 47, 3
_CAPABILITY_V3 = 0x20080522
# What would lead root round a view: files by handle instead of path, raw devices, other processes' memory and roots, mounts, new nodes.
_DAC_READ_SEARCH, _SYS_RAWIO, _SYS_PTRACE, _SYS_ADMIN, _MKNOD = 2, 17, 19, 21, 27
_ROUND_THE_VIEW = (_DAC_READ_SEARCH, _SYS_RAWIO, _SYS_PTRACE, _SYS_ADMIN, _MKNOD)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapabilitySet(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def syscall(what, number, *arguments):
    """The result of a call by number."""
    result = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _call(what, function, *arguments):
    if function(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(flags):
    """Leave the namespaces named by `flags`."""
    _call("unshare", _libc.unshare, flags)


def make_private():
    """No mount of ours is ever seen outside."""
    _call("make / private", _libc.mount, b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)


def die_with_parent(signal):
    """The kernel sends `signal` when the thread that started us ends."""
    _call("prctl(PDEATHSIG)", _libc.prctl, _PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0)


def no_new_privileges():
    """Programs started from here gain nothing by set-uid bits."""
    _call("prctl(NO_NEW_PRIVS)", _libc.prctl, _NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def drop_capabilities(dropped=_ROUND_THE_VIEW):
    """Take capabilities out of every set of this process and all that it starts."""
    for capability in dropped:
        if _libc.prctl(_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0 and _holds(capability):
            code = ctypes.get_errno()
            raise OSError(code, f"drop capability {capability}: {os.strerror(code)}")
        _libc.prctl(_CAP_AMBIENT, ctypes.c_ulong(_CAP_AMBIENT_LOWER), ctypes.c_ulong(capability), 0, 0)
    header, sets = _CapabilityHeader(_CAPABILITY_V3, 0), (_CapabilitySet * 2)()
    _call("capget", _libc.capget, ctypes.byref(header), sets)
    for capability in dropped:
        keep = ~(1 << capability % 32) & 0xFFFFFFFF
        part = sets[capability // 32]
        part.effective, part.permitted, part.inheritable = part.effective & keep, part.permitted & keep, part.inheritable & keep
    _call("capset", _libc.capset, ctypes.byref(header), sets)


def _holds(capability):
    header, sets = _CapabilityHeader(_CAPABILITY_V3, 0), (_CapabilitySet * 2)()
    _call("capget", _libc.capget, ctypes.byref(header), sets)
    return bool(sets[capability // 32].permitted >> capability % 32 & 1)


def clone_tree(path):
    """A detached copy of what is mounted at `path`, as a descriptor."""
    flags = _OPEN_TREE_CLONE | _CLOEXEC | AT_RECURSIVE
    return syscall(f"clone {path}", OPEN_TREE, AT_FDCWD, os.fsencode(path), ctypes.c_uint(flags))


def overlay(lowers, upper, work, flags, options):
    """A detached overlay as a descriptor. Layers are named by descriptor, so that no character of a path needs escaping."""
    context = syscall("fsopen(overlay)", FSOPEN, b"overlay", ctypes.c_uint(1))
    held = []
    try:
        for path in (*lowers, upper, work):
            held.append(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        names = [f"/proc/self/fd/{descriptor}" for descriptor in held]
        strings = {"lowerdir": ":".join(names[:-2]), "upperdir": names[-2], "workdir": names[-1], **options}
        for key, value in strings.items():
            syscall(f"overlay {key}", FSCONFIG, context, _SET_STRING, key.encode(), value.encode(), 0)
        for flag in flags:
            syscall(f"overlay {flag}", FSCONFIG, context, _SET_FLAG, flag.encode(), None, 0)
        syscall("create overlay", FSCONFIG, context, _CREATE, None, None, 0)
        return syscall("fsmount(overlay)", FSMOUNT, context, ctypes.c_uint(1), ctypes.c_uint(0))
    except OSError as bad:
        raise OSError(bad.errno, f"{bad.strerror}{_complaint(context)}") from None
    finally:
        for descriptor in (*held, context):
            os.close(descriptor)


def _complaint(context):
    """What the kernel wrote into the context of a mount that it refused."""
    said = []
    while True:
        try:
            line = os.read(context, 4096)
        except OSError:
            break
        if not line:
            break
        said.append(line.decode("utf-8", "replace").strip())
    return f" ({'; '.join(said)})" if said else ""


def move_mount(descriptor, path):
    """Attach a detached mount at `path`."""
    syscall(f"mount at {path}", MOVE_MOUNT, descriptor, b"", AT_FDCWD, os.fsencode(path), ctypes.c_uint(_MOVE_FROM_FD))


def set_read_only(path, *, recursive=False, clear=False, descriptor=AT_FDCWD):
    """Make the mount at `path` (or behind `descriptor`, path "") read-only, or writable again."""
    attributes = _MountAttributes(0 if clear else _RDONLY, _RDONLY if clear else 0, 0, 0)
    flags = (AT_RECURSIVE if recursive else 0) | (0 if path else AT_EMPTY_PATH)
    pointer, size = ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes))
    syscall(f"read-only {path}", MOUNT_SETATTR, descriptor, os.fsencode(path), ctypes.c_uint(flags), pointer, size)
