"""Enters a mount view: private namespace, layers created detached while all is writable, the rest read-only, then the layers attached.

Standard library only; runs in the child. An ordinary user gets a user namespace that maps only the own ids; the program's `exec`
then loses its capabilities there, so it cannot undo the mounts. Root keeps all but those that could, and finds no disk behind the
nodes in /dev: a node stays writable on a read-only mount. Programs in `over` are hidden by stand-ins.
"""

import errno
import os
import stat

import syscalls

_SHARED = ("/dev/shm",)
_WRITABLE_AGAIN = ("/proc", "/dev/pts", "/dev/mqueue")


def enter(spec):
    """Make the view of `spec` around this process. Returns what could not be layered, one line each; raises `OSError`."""
    private_user = _unshare()
    syscalls.make_private()
    notes = []
    attached = {}
    for layer in spec["overlays"]:
        attached.update(_layered(layer, private_user, notes))
    shared = [os.path.realpath(path) for path in (*_SHARED, *spec["shared"]) if os.path.exists(path)]
    attached.update({path: syscalls.clone_tree(path) for path in shared})
    attached.update({path: syscalls.clone_tree("/dev/null") for path in _disks()})
    attached.update({path: syscalls.clone_tree(stand_in) for path, stand_in in spec["over"].items()})
    for path in spec["sockets"]:
        try:
            attached.setdefault(path, syscalls.clone_tree(path))
        except OSError:
            continue  # gone since it was listed
    optional = {*spec["sockets"], *(layer["at"] for layer in spec["overlays"] if layer["is_mount"])}  # may be hidden by a layer above
    writable = [path for path in _WRITABLE_AGAIN if os.path.ismount(path) and not os.statvfs(path).f_flag & os.ST_RDONLY]
    syscalls.set_read_only("/", recursive=True)
    for path in writable:
        syscalls.set_read_only(path, clear=True)
    for path in sorted(attached, key=lambda path: path.count("/") if path != "/" else 0):
        try:
            syscalls.move_mount(attached[path], path)
        except OSError as bad:
            if path not in optional:
                raise
            notes.append(bad.strerror)
        os.close(attached[path])
    syscalls.drop_capabilities()
    return notes


def _disks():
    """Nodes through which a whole file system could be written."""
    found = []
    for at, _, names in os.walk("/dev"):
        for name in names:
            try:
                path = os.path.join(at, name)
                if stat.S_ISBLK(os.lstat(path).st_mode) and os.access(path, os.W_OK):
                    found.append(path)
            except OSError:
                continue
    return found


def _unshare():
    """A mount namespace of our own; True when it took a user namespace to get it."""
    try:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        return False
    except OSError as bad:
        if bad.errno != errno.EPERM:
            raise
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _layered(layer, private_user, notes):
    """The detached mounts for one layer by their path: the overlay, else what stands in for it."""
    try:
        return {layer["at"]: _overlay(layer, private_user)}
    except OSError as bad:
        if layer["required"]:
            raise OSError(bad.errno, f"{layer['at']}: {bad.strerror}") from None
        notes.append(f"{layer['at']}: {bad.strerror}")
    mounts = {}
    if layer["is_mount"]:
        mounts[layer["at"]] = syscalls.clone_tree(layer["at"])
        syscalls.set_read_only("", recursive=True, descriptor=mounts[layer["at"]])
    for inner in layer["instead"]:
        mounts.update(_layered(inner, private_user, notes))
    for name in layer["variables"]:
        os.environ[name] = layer["plain"]
    return mounts


def _overlay(layer, private_user):
    if private_user:
        return syscalls.overlay(layer["lowers"], layer["upper"], layer["work"], ("userxattr",), {})
    try:
        cheap = {"redirect_dir": "on", "metacopy": "on"}  # rename and chmod of large files without copying them
        return syscalls.overlay(layer["lowers"], layer["upper"], layer["work"], (), cheap)
    except OSError:
        return syscalls.overlay(layer["lowers"], layer["upper"], layer["work"], (), {})
