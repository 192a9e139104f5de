"""Hostile acts under each protection: the original stays as it was, or, where that cannot be had, the sandbox says what changed.

Each act is also run without any view, where it must do its harm: a test whose act is harmless would prove nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from torture_acts import ACTS, Act
from torture_ground import Ground, python

from trainflash import sandbox
from trainflash.view import trial

FAST = frozenset((
    "write by absolute path", "mmap", "rename a folder", "chmod", "append to data of the project", "by ../", "by a file handle",
    "by the disk's own node", "by the working folder of its starter", "namespaces of its own", "editable install by a path file",
    "git stash", "git index by variable", "a helper outside any view, over a socket",
))  # fmt: skip
PRELUDE = "import os\nO, R = os.environ['ORIGINAL'], os.environ['RUN']\n"


def cases() -> list:
    """Every act under no view and under each protection."""
    found = []
    for act in ACTS:
        for protection in ("none", "mount", "landlock", "manifest"):
            marks = [] if act.name in FAST and not act.slow else [pytest.mark.full]
            found.append(pytest.param(act, protection, id=f"{act.name}-{protection}".replace(" ", "_"), marks=marks))
    return found


@pytest.fixture(scope="module")
def grounds(tmp_path_factory):
    """A project for each protection; HOME and the state folder are of their own."""
    with pytest.MonkeyPatch.context() as patched:
        base = tmp_path_factory.mktemp("torture")
        (base / "home").mkdir()
        patched.setenv("HOME", str(base / "home"))
        patched.setenv("XDG_STATE_HOME", str(base / "state"))
        made: dict[str, Ground] = {}

        def ground(protection: str) -> Ground:
            if protection not in made:
                (base / protection).mkdir()
                made[protection] = Ground(base / protection)
            return made[protection]

        yield ground


def available(ground: Ground, protection: str) -> bool:
    """Whether this machine allows the protection at all."""
    if protection in ("none", "manifest"):
        return True
    code = "import sys; sys.path.append(sys.argv[1]); import syscalls, landlock; "
    code += "landlock.abi()" if protection == "landlock" else "import mounts; mounts._unshare()"
    folder = os.path.dirname(trial.__file__)
    return subprocess.run([sys.executable, "-I", "-S", "-c", code, folder], capture_output=True).returncode == 0


@pytest.mark.parametrize(("act", "protection"), cases())
def test_no_act_hurts_the_original(grounds, monkeypatch, act: Act, protection: str):
    if act.root and os.geteuid() != 0:
        pytest.skip("only root could do it")
    if act.needs_disk and not any(os.path.exists(f"/dev/{name}") for name in ("vda", "sda", "nvme0n1", "xvda", "loop0")):
        pytest.skip("no disk to be seen here")
    ground = grounds(protection)
    if not available(ground, protection):
        pytest.skip("not to be had on this machine")
    if not ground.unchanged():
        ground.renew()
    monkeypatch.chdir(ground.project)
    command = ["sh", "-c", act.code] if act.shell else python(PRELUDE + act.code)
    done = ground.run(protection, command, alone=act.mounts, outlives=act.outlives)
    kept = ground.unchanged()
    if protection == "none":
        assert kept is not act.harms, f"without protection: {done.stderr}"
        return
    wanted = getattr(act, protection)
    assert kept is (wanted == "kept"), (done.stdout, done.stderr)
    said = sandbox.original_changes(ground.made())
    assert bool(said) is not kept, said


def test_there_are_enough_acts():
    assert len(ACTS) >= 60
    assert len({act.name for act in ACTS}) == len(ACTS)
    assert {act.name for act in ACTS} >= FAST
