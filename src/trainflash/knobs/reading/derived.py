"""Classes of the program that are derived from a library's, such as a project's own training arguments."""

from __future__ import annotations

import libcst as cst

from trainflash.knobs.project import Project
from trainflash.knobs.reading.python_source import PythonFile, dotted

Class = tuple[PythonFile, cst.ClassDef]


def classes(project: Project, bases: tuple[str, ...]) -> list[Class]:
    """Those derived from one of the dotted names `bases`, directly or through each other (by name), in the order of derivation."""
    known = [(file, node) for file in project.parsed("class ") for node in file.each(cst.ClassDef)]
    found: list[Class] = []
    names: set[str] = set()
    before = -1
    while before != len(found):
        before = len(found)
        for file, owner in known:
            parents = [arg.value for arg in owner.bases]
            inherits = any(file.full_name(each) in bases or (dotted(each) or "").split(".")[-1] in names for each in parents)
            if inherits and all(owner is not each for _, each in found):
                found.append((file, owner))
                names.add(owner.name.value)
    return found
