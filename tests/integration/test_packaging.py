"""The wheel and the source distribution: both hold everything, and what is installed from the wheel works from another folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import trainflash

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ("skills", "templates", "examples")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and source distribution, built as anybody builds them."""
    folder = tmp_path_factory.mktemp("dist")
    make = "from hatchling.build import build_sdist, build_wheel; import sys; build_sdist(sys.argv[1]); build_wheel(sys.argv[1])"
    builder = folder / "builder"
    _run([sys.executable, "-m", "pip", "install", "-q", "--target", str(builder), "hatchling>=1.25,<2"], cwd=folder)
    _run([sys.executable, "-c", make, str(folder)], cwd=ROOT, PYTHONPATH=str(builder))
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def _run(command: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-800:]}{done.stderr[-1500:]}"
    return done.stdout


def _files(folder: Path) -> set[str]:
    """Files below a folder of the checkout that git knows or would add."""
    named = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "."], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    return {name for name in named.split("\0") if name and (folder / name).is_file()}


def test_the_wheel_holds_the_package_and_what_travels_with_it(built):
    held = set(zipfile.ZipFile(built[0]).namelist())
    assert {f"trainflash/{name}" for name in _files(ROOT / "src/trainflash")} <= held
    for folder in BUNDLED:
        assert {f"trainflash/_bundled/{folder}/{name}" for name in _files(ROOT / folder)} <= held
    assert not [name for name in held if name.startswith(("tests/", "bench/", "evals/")) or "__pycache__" in name]


def test_the_source_distribution_holds_the_checkout(built):
    with tarfile.open(built[1]) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name for name in _files(ROOT) if not name.endswith(".whl")}
    assert wanted <= held, sorted(wanted - held)[:10]


@pytest.fixture(scope="module")
def tool(built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`trainflash` of a new environment that holds the wheel alone; its dependencies are this environment's."""
    place = tmp_path_factory.mktemp("tool")
    venv.create(place, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    ours = [path for path in sys.path if path.endswith("site-packages")]  # of the base interpreter too, where this environment sees them
    (site / "dependencies.pth").write_text("\n".join(ours) + "\n")
    _run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--prefix", str(place), "--ignore-installed", str(built[0])], cwd=place
    )
    command = place / "bin/trainflash"
    script = command.read_text().splitlines()
    command.write_text("\n".join([f"#!{place / 'bin/python'}", *script[1:]]) + "\n")
    return command


def test_the_installed_tool_is_the_wheel_and_works_from_another_folder(tool, tmp_path):
    where = _run([str(tool.parent / "python"), "-c", "import trainflash; print(trainflash.__file__)"], cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tool.parents[1])
    assert trainflash.__version__ in _run([str(tool), "--version"], cwd=tmp_path)
    assert "memoize_function" in _run([str(tool), "explain"], cwd=tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    changes = json.loads(_run([str(tool), "install", str(project), "--json"], cwd=tmp_path))["changes"]
    assert {change["action"] for change in changes} == {"create"}
    assert (project / ".claude/skills/trainflash/SKILL.md").is_file()
    assert (project / "CLAUDE.md").read_text() == (ROOT / "CLAUDE.md").read_text()


def test_the_installed_tool_diagnoses_a_program(tool, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text((ROOT / "examples/wine_mlp/train.py").read_text())
    for name in ("config.yaml", "data.py", "model.py", "trainer.py"):
        (project / name).write_text((ROOT / "examples/wine_mlp" / name).read_text())
    state = str(tmp_path / "state")
    command = [str(tool), "diagnose", "--json", "--steps", "60", "--", sys.executable, "train.py"]
    found = json.loads(_run(command, cwd=project, XDG_STATE_HOME=state, OMP_NUM_THREADS="1"))
    assert found["steps"] > 0 and found["findings"]
    page = json.loads(_run([str(tool), "report", "--json"], cwd=project, XDG_STATE_HOME=state))["report"]
    assert "Step by step" in Path(page).read_text()


def test_scripts_run_from_an_unpacked_source_distribution(built, tmp_path):
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # from Python 3.11.4 on
    [unpacked] = tmp_path.iterdir()
    for script in sorted((unpacked / "scripts").glob("*.py")):
        said = _run([sys.executable, str(script), "--help"], cwd=tmp_path)
        assert said.startswith(f"Usage: trainflash {script.stem}")
