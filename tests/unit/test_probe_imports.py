"""Hooks run after the import of their module, however far that was when they were asked for."""

from __future__ import annotations

import importlib
import sys
import types

import pytest
from probe_events import part


@pytest.fixture
def hooked(tmp_path, monkeypatch):
    """Imports a module with this source, whose class is complete only at its end; names of the classes that a hook on it saw."""
    imports, seen = part("imports"), []
    asker = types.ModuleType("late_asker")
    asker.ask = lambda: imports.after("late_library", lambda module: seen.append(module.Runner.__name__))
    monkeypatch.setitem(sys.modules, "late_asker", asker)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [imports.Watcher, *sys.meta_path])
    (tmp_path / "late_other.py").write_text("")

    def run(source: str) -> list:
        (tmp_path / "late_library.py").write_text(source)
        importlib.import_module("late_library")
        return seen

    yield run
    for name in ("late_library", "late_other"):
        sys.modules.pop(name, None)


def test_a_module_that_was_being_imported_is_hooked_by_the_next_import_after_it(hooked):
    seen = hooked("import late_asker\nlate_asker.ask()\nimport late_other\nclass Runner: pass\n")
    assert seen == []
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("late_missing")
    assert seen == ["Runner"]


def test_a_module_that_was_not_imported_is_hooked_at_its_end(hooked):
    sys.modules["late_asker"].ask()
    assert hooked("class Runner: pass\n") == ["Runner"]
