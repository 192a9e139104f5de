"""Ways that lead from a run back to the original's code, where no mount view stands in for it: each ends at the sandbox's copy."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from torture_ground import git

from trainflash import launch, sandbox
from trainflash.schema import Command
from trainflash.view import open_view

pytest.importorskip("setuptools")

PROTECTIONS = ("landlock", "manifest")
SETUP = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "owners"
version = "1"
[project.scripts]
owners-train = "pkg.model:main"
[tool.setuptools]
packages = [{packages}]
package-dir = {folder}
"""
MODEL = "from pkg.deep import part\nVALUE = 'original'\ndef main():\n    print(VALUE, part.VALUE, __file__, part.__file__)\n"
CALL = "import pkg.model; pkg.model.main()"


@dataclass(frozen=True)
class Way:
    """`prepare(owner)` is done to the owner's environment; `words` start the program, {root} and {env} being the project's folders."""

    prepare: Callable[[Owner], None]
    words: tuple[str, ...] = ("{env}/bin/python", "-c", CALL)
    variables: tuple[tuple[str, str], ...] = ()


class Owner:
    """A project and an environment of its own, which has what the tests' one has."""

    def __init__(self, base: Path, folder: str = "") -> None:
        self.root, self.env = base / "project", base / "env"
        code = self.root / folder / "pkg"
        (code / "deep").mkdir(parents=True)
        (code / "__init__.py").write_text("")
        (code / "model.py").write_text(MODEL)
        (code / "ran.py").write_text(CALL)
        (code / "deep" / "part.py").write_text("VALUE = 'original'\n")
        (self.root / "elsewhere").mkdir()  # where programs start, so that no package lies in the working folder
        (self.root / "elsewhere" / "note").write_text("")
        (self.root / "train.py").write_text(f"VALUE = 'original'\n{CALL}\nprint(VALUE, VALUE, __file__, __file__)\n")
        (self.root / "run.sh").write_text(f"exec {self.env}/bin/python {self.root}/train.py\n")
        (self.root / "early.py").write_text("VALUE = 'original'\n")
        (self.root / ".gitignore").write_text("*.egg-info/\nbuild/\n__pycache__/\n")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.env], check=True)
        self.site = next(self.env.glob("lib/python*/site-packages"))
        (self.site / "of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def commit(self) -> None:
        git(self.root, "init", "-q")
        git(self.root, "add", ".")
        git(self.root, "commit", "-q", "-m", "first")

    def filled(self, text: str) -> str:
        return text.replace("{root}", str(self.root)).replace("{env}", str(self.env))

    def install(self, packages: str, folder: str, *options: str) -> None:
        """`pip install -e`, as owners do it."""
        (self.root / "pyproject.toml").write_text(SETUP.format(packages=packages, folder=folder))
        words = ["install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "-e", str(self.root)]
        done = subprocess.run([sys.executable, "-m", "pip", "--python", f"{self.env}/bin/python", *words, *options], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()


def path_file(owner: Owner) -> None:
    (owner.site / "owners.pth").write_text(f"{owner.root}\n")


def path_file_by_a_link(owner: Owner) -> None:
    (owner.root.parent / "alias").symlink_to(owner.root)
    (owner.site / "owners.pth").write_text(f"{owner.root.parent}/alias\n")


def own_finder(owner: Owner) -> None:
    """As other build systems do it: a finder before all others, which makes its specs by itself."""
    (owner.site / "owners_finder.py").write_text(f"""
import sys
from importlib.util import spec_from_file_location
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        places = {{"pkg": "pkg/__init__.py", "pkg.model": "pkg/model.py"}}
        if name not in places:
            return None
        return spec_from_file_location(name, "{owner.root}/" + places[name])
sys.meta_path.insert(0, Finder)
""")
    (owner.site / "owners.pth").write_text("import owners_finder\n")


def nothing(owner: Owner) -> None:
    """The environment knows nothing of the project."""


BY_FILE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("model", "{root}/pkg/model.py")
sys.path.append("{root}")
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); module.main()
"""
IN_PATH = "import sys; sys.path.insert(0, '{root}'); " + CALL
WAYS = {
    "editable, mapped by a finder": Way(lambda owner: owner.install('"pkg", "pkg.deep"', "{}")),
    "editable, one package of a namespace": Way(lambda owner: owner.install('"pkg.deep"', "{}"), ("{env}/bin/python", "-c", (
        "from pkg.deep import part; print(part.VALUE, part.VALUE, part.__file__, part.__file__)"))),
    "editable, by a path file": Way(
        lambda owner: owner.install('"pkg", "pkg.deep"', "{}", "--config-settings", "editable_mode=compat"), ("{env}/bin/owners-train",)
    ),
    "editable, by a module of the environment": Way(
        lambda owner: owner.install('"pkg", "pkg.deep"', "{}"), ("{env}/bin/python", "-c", "import runpy; runpy.run_module('pkg.ran')")
    ),
    "path file": Way(path_file),
    "path file, by a link": Way(path_file_by_a_link),
    "finder of another build system": Way(own_finder),
    "sys.path": Way(nothing, ("{env}/bin/python", "-c", IN_PATH)),
    "PYTHONPATH": Way(nothing, variables=(("PYTHONPATH", "{root}"),)),
    "module named by its file": Way(nothing, ("{env}/bin/python", "-c", BY_FILE)),
    "script by its absolute path": Way(nothing, ("{env}/bin/python", "{root}/train.py")),
    "shell script by its absolute path": Way(nothing, ("sh", "{root}/run.sh")),
    "script that a shell line names": Way(nothing, ("sh", "-c", "cd /; exec {env}/bin/python {root}/train.py")),
    "child of the program": Way(path_file, ("{env}/bin/python", "-c", (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CALL!r}], cwd='/', check=True)"))),
    "process that is spawned": Way(path_file, ("{env}/bin/python", "-c", (
        "import multiprocessing as m; import pkg.model; p = m.get_context('spawn').Process(target=pkg.model.main); p.start(); p.join()"))),
}  # fmt: skip


@pytest.fixture
def base(tmp_path, monkeypatch):
    for name, folder in (("HOME", "home"), ("XDG_STATE_HOME", "state")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    return tmp_path


def run(base: Path, owner: Owner, way: Way, protection: str, led: bool) -> tuple[int, str]:
    """Exit code and output of the program on the candidate's side; `led` False: with our part taken out."""
    box = sandbox.newest(owner.root) or sandbox.create(owner.root)
    for path in Path(box.worktree).rglob("*.py"):
        path.write_text(path.read_text().replace("'original'", "'candidate'"))
    run_dir = base / f"run-{protection}-{led}"
    run_dir.mkdir()
    view = open_view(box, "candidate", run_dir, cwd="elsewhere", only=protection)
    if not led:
        kept = {name: value for name, value in view.env.items() if name not in ("TRAINFLASH_ORIGINAL", "TRAINFLASH_COPY")}
        view = dataclasses.replace(view, env=kept, moved=None)
    words = tuple(map(owner.filled, way.words))
    command = Command(words, cwd="elsewhere", env={name: owner.filled(value) for name, value in way.variables})
    process = launch.start_in(view, "candidate", command, run_dir, launch.Recording("timing"))
    try:
        process.wait(60)
    finally:
        process.finish()
    said = process.log.read_text()
    if "the view cannot be entered" in said:
        pytest.skip("not to be had on this machine")
    return process.returncode, said


@pytest.mark.full
@pytest.mark.parametrize("protection", PROTECTIONS)
@pytest.mark.parametrize("name", WAYS)
def test_no_way_leads_to_the_original(base, name, protection):
    owner, way = Owner(base), WAYS[name]
    way.prepare(owner)
    owner.commit()
    code, said = run(base, owner, way, protection, led=False)
    assert code == 0 and "original" in said.split(), said
    code, said = run(base, owner, way, protection, led=True)
    assert code == 0, said
    words = said.split()
    assert "candidate" in words and "original" not in words, said
    assert str(owner.root) + os.sep not in said


def test_an_editable_install_is_led_to_the_copy(base):
    owner, way = Owner(base), WAYS["finder of another build system"]
    way.prepare(owner)
    owner.commit()
    assert "original" in run(base, owner, way, "manifest", led=False)[1].split()
    assert "original" not in run(base, owner, way, "manifest", led=True)[1].split()


def test_a_file_that_the_candidate_deleted_is_not_taken_from_the_original(base):
    owner = Owner(base)
    own_finder(owner)
    owner.commit()
    box = sandbox.create(owner.root)
    Path(box.worktree, "pkg", "model.py").unlink()
    code, said = run(base, owner, WAYS["finder of another build system"], "manifest", led=True)
    assert code == 1 and "ModuleNotFoundError: No module named 'pkg.model'" in said


def test_what_was_imported_before_we_came_is_refused_with_the_mend(base):
    owner = Owner(base)
    (owner.site / "owners.pth").write_text(f"{owner.root}\nimport early\n")
    owner.commit()
    code, said = run(base, owner, Way(nothing, ("{env}/bin/python", "-c", "print('ran')")), "manifest", led=True)
    assert code == 125 and "early was imported from the original project" in said and "mount view" in said
    assert "ran" not in said.splitlines()


def test_an_environment_inside_the_project_stays_where_it_is(base):
    """It is linked whole: under another name it would be another environment."""
    owner = Owner(base)
    path_file(owner)
    owner.env.rename(owner.root / ".venv")
    owner.env = owner.root / ".venv"
    (owner.root / ".gitignore").write_text(".venv/\n__pycache__/\n")
    owner.commit()
    way = Way(nothing, ("{env}/bin/python", "-c", "import sys; print(sys.prefix); print(sys.executable); " + CALL))
    code, said = run(base, owner, way, "manifest", led=True)
    assert code == 0 and said.splitlines()[:2] == [str(owner.env), f"{owner.env}/bin/python"]
    assert "candidate" in said.split()
