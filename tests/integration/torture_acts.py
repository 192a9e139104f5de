"""What a training program, or what it starts, could do to its owner's project: one line of the table each, run as a program of its own.

An act finds the original in ORIGINAL and the run's own folder in RUN; its working folder is the project as the run sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# kept: not one byte, mode or time stamp of the original differs afterwards. seen: it does, and the sandbox says so.
Outcome = Literal["kept", "seen"]


@dataclass(frozen=True)
class Act:
    """One act. `root`: only root could do it at all; `slow`: left to the full suite."""

    name: str
    code: str
    shell: bool = False
    mount: Outcome = "kept"
    landlock: Outcome = "kept"
    manifest: Outcome = "seen"
    harms: bool = True  # without any view the original is changed: that is what the protection is there for
    root: bool = False
    slow: bool = False
    mounts: bool = False  # tries to mount: without a view it gets a namespace, so that the machine keeps its own
    outlives: bool = False  # goes on after the run, and says when it is done
    needs_disk: bool = False


_GIT = 'git -c user.name=x -c user.email=x@x -C "$ORIGINAL" '

ACTS = (
    # the original by its absolute path
    Act("write by absolute path", "open(O + '/train.py', 'w').write('x')"),
    Act("append by absolute path", "open(O + '/train.py', 'a').write('x')"),
    Act("write in place with the time put back", """
f = O + '/train.py'
s = os.stat(f)
h = open(f, 'r+')
h.write('X')
h.close()
os.utime(f, ns=(s.st_atime_ns, s.st_mtime_ns))
"""),
    Act("truncate", "os.truncate(O + '/train.py', 0)"),
    Act("open with O_TRUNC", "os.open(O + '/train.py', os.O_WRONLY | os.O_TRUNC)"),
    Act("mmap", "import mmap; h = open(O + '/train.py', 'r+b'); m = mmap.mmap(h.fileno(), 0); m[0:1] = b'X'; m.flush()"),
    Act("unlink", "os.unlink(O + '/train.py')"),
    Act("rename inside", "os.rename(O + '/train.py', O + '/other.py')"),
    Act("rename a folder", "os.rename(O + '/pkg', O + '/gkp')"),
    Act("replace by a temporary file", "open(O + '/t', 'w').close(); os.replace(O + '/t', O + '/train.py')"),
    Act("new file", "open(O + '/new.py', 'w').close()"),
    Act("new folder", "os.mkdir(O + '/new')"),
    Act("remove a whole folder", "import shutil; shutil.rmtree(O + '/pkg')"),
    Act("symlink over a file", "os.unlink(O + '/train.py'); os.symlink('/etc/passwd', O + '/train.py')"),
    Act("new symlink", "os.symlink('train.py', O + '/link2')"),
    Act("hard link in the original", "os.link(O + '/train.py', O + '/hard')"),
    Act("write through a hard link made in the run's folder", "os.link(O + '/train.py', R + '/hard'); open(R + '/hard', 'w').write('x')"),
    Act("fifo", "os.mkfifo(O + '/fifo')"),
    Act("chmod", "os.chmod(O + '/train.py', 0o777)", landlock="seen"),
    Act("chmod of a folder", "os.chmod(O + '/pkg', 0o700)", landlock="seen"),
    Act("utime", "os.utime(O + '/train.py', (1, 1))", landlock="seen"),
    Act("chown", "os.chown(O + '/train.py', 12345, 12345)", landlock="seen", root=True),
    Act("extended attribute", "os.setxattr(O + '/train.py', 'user.x', b'1')", landlock="seen"),
    # ignored data, and what lies outside
    Act("write data of the project", "open('data/x.bin', 'w').write('x')"),
    Act("append to data of the project", "open('data/x.bin', 'a').write('x')"),
    Act("numpy-like r+ of data", "h = open('data/deep/y.bin', 'r+b'); h.write(b'X'); h.close()"),
    Act("delete data by absolute path", "import shutil; shutil.rmtree(O + '/data')"),
    Act("chmod of data", "os.chmod('data/x.bin', 0o600)", landlock="seen"),
    # the same by other names
    Act("by ../", "p = os.path.join('..', os.path.basename(O), 'train.py'); open(p, 'w').write('x')", manifest="kept"),
    Act("by chdir", "os.chdir(O); open('train.py', 'w').write('x')"),
    Act("by /proc/self/root", "open('/proc/self/root' + O + '/train.py', 'w').write('x')"),
    Act("by /proc/self/cwd", "os.chdir(O); open('/proc/self/cwd/train.py', 'w').write('x')"),
    Act("by the working folder of its starter", "open(f'/proc/{os.getppid()}/cwd/train.py', 'w').write('x')"),
    Act("by the root of its starter", "open(f'/proc/{os.getppid()}/root{O}' + '/train.py', 'w').write('x')", root=True),
    Act("by a descriptor of the folder", "d = os.open(O, os.O_RDONLY); os.close(os.open('train.py', os.O_WRONLY | os.O_TRUNC, dir_fd=d))"),
    Act("by descriptors that it was born with", """
for name in os.listdir('/proc/self/fd'):
    try:
        os.close(os.open('train.py', os.O_WRONLY | os.O_TRUNC, dir_fd=int(name)))
    except OSError:
        pass
""", harms=False, manifest="kept"),
    Act("by a symlink in the run's folder", "os.symlink(O, R + '/l'); open(R + '/l/train.py', 'w').write('x')"),
    Act("by a file handle", """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [('size', ctypes.c_uint), ('type', ctypes.c_int), ('data', ctypes.c_ubyte * 128)]
handle, mount = Handle(128), ctypes.c_int()
sample = R + '/sample'; open(sample, 'w').close()
assert libc.name_to_handle_at(-100, sample.encode(), ctypes.byref(handle), ctypes.byref(mount), 0) == 0
ctypes.memmove(handle.data, struct.pack('<II', int(os.environ['INODE']), 0), 8)
at = libc.open_by_handle_at(os.open(R, os.O_RDONLY), ctypes.byref(handle), os.O_WRONLY | os.O_TRUNC)
assert at >= 0, ctypes.get_errno()
os.close(at)
""", root=True),
    Act("by the disk's own node", """
import stat
for at, _, names in os.walk('/dev'):
    for path in (os.path.join(at, name) for name in names):
        if stat.S_ISBLK(os.lstat(path).st_mode):
            try:
                h = os.open(path, os.O_WRONLY)
            except OSError:
                continue
            if stat.S_ISBLK(os.fstat(h).st_mode):
                open(O + '/a disk can be written', 'w').close()
                open(R + '/disk', 'w').close()
""", root=True, needs_disk=True),
    Act("by a new node of the disk", """
os.mknod('node', 0o60600, os.stat(O).st_dev)
os.open('node', os.O_RDWR)
open(R + '/disk', 'w').close()
""", root=True, manifest="kept", needs_disk=True),
    # mounts and namespaces
    Act("remount",
        "mount -o remount,rw,bind \"$ORIGINAL\" || "
        "mount -o remount,rw /; "
        "echo x > \"$ORIGINAL/train.py\"", mounts=True, shell=True),
    Act("umount", "umount -l \"$ORIGINAL\"; umount -l \"$ORIGINAL\"; echo x > \"$ORIGINAL/train.py\"", mounts=True, shell=True),
    Act("bind mount elsewhere",
        "mkdir -p m; "
        "mount --bind \"$ORIGINAL\" m && "
        "echo x > m/train.py; "
        "echo y > \"$ORIGINAL/train.py\"", mounts=True, shell=True),
    Act("namespaces of its own",
        "unshare -Urm sh -c 'umount -l \"$ORIGINAL\"; "
        "mount -o remount,rw /; "
        "echo x > \"$ORIGINAL/train.py\"' || "
        "echo x > \"$ORIGINAL/train.py\"", mounts=True, shell=True),
    Act("enter the machine's namespace", "nsenter -t $PPID -m sh -c 'echo x > \"$ORIGINAL/train.py\"'", shell=True, root=True),
    Act("chroot", "PATH=$PATH:/usr/sbin:/sbin chroot /proc/$PPID/root sh -c 'echo x > \"$ORIGINAL/train.py\"'", shell=True, root=True),
    # imports that lead back
    Act("editable install by a path file", """
import site, sys
open(R + '/e.pth', 'w').write(O + '\\n')
site.addsitedir(R)
sys.path.reverse()
import pkg.old
open(pkg.old.__file__, 'w').write('x')
"""),
    Act("module found by absolute path", """
import importlib.util as u
s = u.spec_from_file_location('t', O + '/pkg/old.py')
m = u.module_from_spec(s)
s.loader.exec_module(m)
open(m.__file__, 'w').write('x')
"""),
    Act("byte code beside the original", """
import sys
sys.dont_write_bytecode = False
sys.path.insert(0, O)
import pkg.old
assert os.path.exists(O + '/pkg/__pycache__')
"""),
    # git, asked by the program
    Act("git commit", _GIT + "commit -q -a -m x --no-gpg-sign", shell=True),
    Act("git commit of nothing", _GIT + "commit -q --allow-empty -m x", shell=True),
    Act("git add", _GIT + "add -A", shell=True),
    Act("git stash", _GIT + "stash -q", shell=True),
    Act("git checkout of a file", _GIT + "checkout -q -- train.py", shell=True),
    Act("git checkout of a branch", _GIT + "checkout -q -b other", shell=True),
    Act("git reset", _GIT + "reset -q --hard", shell=True),
    Act("git clean", _GIT + "clean -q -f -d -x", shell=True),
    Act("git branch", _GIT + "branch other", shell=True),
    Act("git tag", _GIT + "tag v1", shell=True),
    Act("git config", _GIT + "config user.name Mallory", shell=True),
    Act("git gc", _GIT + "pack-refs --all; " + _GIT + "gc -q --prune=now", shell=True, slow=True),
    Act("git hook installed",
        "printf '#!/bin/sh\\n' > \"$ORIGINAL/.git/hooks/pre-commit\"; "
        "chmod +x \"$ORIGINAL/.git/hooks/pre-commit\"", shell=True),
    Act("git update-index", _GIT + "update-index --assume-unchanged train.py", shell=True),
    Act("git by variables",
        "GIT_DIR=\"$ORIGINAL/.git\" GIT_WORK_TREE=\"$ORIGINAL\" git -c user.name=x -c user.email=x@x commit -q -a -m x", shell=True),
    Act("git index by variable", "GIT_INDEX_FILE=\"$ORIGINAL/.git/index\" git --git-dir \"$ORIGINAL/.git\" read-tree --empty", shell=True),
    Act("git in its own folder", "git -c user.name=x -c user.email=x@x commit -q --allow-empty -a -m x", shell=True, manifest="kept"),
    Act("git remove", "rm -rf \"$ORIGINAL/.git\"", shell=True),
    # processes
    Act("a daemon that outlives the run", """
import time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in (0, 1, 2):
            os.close(n)
        end = time.monotonic() + 60
        while not os.path.exists(R + '/go') and time.monotonic() < end:
            time.sleep(0.02)
        try:
            open(O + '/train.py', 'w').write('x')
        except BaseException:
            pass
        open(R + '/done', 'w').close()
    os._exit(0)
os.wait()
""", outlives=True),
    Act("a worker process", """
import multiprocessing as m
p = m.get_context('fork').Process(target=lambda: open(O + '/train.py', 'w').write('x'))
p.start()
p.join()
"""),
    Act("another program", "cp /dev/null \"$ORIGINAL/train.py\"", shell=True),
    Act("a shell that resets its environment", "env -i sh -c \"echo x > '$ORIGINAL/train.py'\"", shell=True),
    Act("a helper outside any view, over a socket", """
import socket
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ['HELPER'])
s.sendall(b'write')
s.recv(1)
""", mount="seen", landlock="seen"),
    Act("memory of its starter", "h = open(f'/proc/{os.getppid()}/mem', 'r+b', 0); open(O + '/train.py', 'w').write('x')"),
)  # fmt: skip
