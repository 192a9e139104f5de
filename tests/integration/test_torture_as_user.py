"""The whole torture once more as an ordinary user, whose mount view stands in a user namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def interpreter() -> str | None:
    """A Python of our version that every user can start; None where there is none."""
    # the first start may still have root's rights to its folders: its child has not
    told = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', 'import sys; print(*sys.version_info[:2])'], check=True)"
    for path in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([*NOBODY, path, "-I", "-c", told], capture_output=True, text=True, cwd="/")
        if done.returncode == 0 and done.stdout.split() == [str(part) for part in sys.version_info[:2]]:
            return path
    return None


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.geteuid() != 0, reason="test_torture.py is an ordinary user's already")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_no_act_of_an_ordinary_user_hurts_the_original():
    python = interpreter()
    if python is None:
        pytest.skip(f"no Python {sys.version_info[0]}.{sys.version_info[1]} here that other users can start")
    base = tempfile.mkdtemp(prefix="trainflash-torture-")
    os.chown(base, 65534, 65534)
    environment = {
        **os.environ,
        "HOME": base,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), sysconfig.get_path("purelib"))),
    }
    words = [python, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-rps"]
    words += ["--basetemp", f"{base}/t", str(ROOT / "tests" / "integration" / "test_torture.py")]
    try:
        done = subprocess.run([*NOBODY, *words], env=environment, cwd="/", capture_output=True, text=True, timeout=1700)
    finally:
        shutil.rmtree(base)
    if "ERROR: file or directory not found" in done.stderr or "PermissionError" in done.stderr:
        pytest.skip("this checkout cannot be read by other users")
    if "No module named pytest" in done.stderr:
        pytest.skip("other users cannot read this environment's packages")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    if "not to be had on this machine" in done.stdout:
        pytest.skip("ordinary users get no user namespace here")
    passed = [line for line in done.stdout.splitlines() if line.startswith("PASSED") and "-mount]" in line]
    assert len(passed) >= 60, done.stdout[-5000:]
