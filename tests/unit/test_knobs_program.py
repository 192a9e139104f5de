"""What a plan reads of a program: the files that ran, each once, and their nodes in the order of the source."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import libcst as cst
from knob_scenes import finding, loader, program, summary

from trainflash.knobs import planning
from trainflash.knobs.project import Project
from trainflash.knobs.reading import python_source, tree
from trainflash.knobs.reading.callees import meant
from trainflash.schema import Command

EVERYTHING = Path(__file__).resolve().parents[2] / "src" / "trainflash"


def test_nodes_are_those_of_libcst_in_its_order():
    for path in sorted((EVERYTHING / "knobs").glob("*.py")):
        file = python_source.parse(path.name, path.read_bytes())
        for node in file.nodes:
            told = [each for each in node.children if not isinstance(each, tree.BLANK)]
            assert all(ours is theirs for ours, theirs in zip(tree.children(node), told, strict=True))
            assert all(file.parent(each) is node for each in told)


def test_what_lies_in_a_node_is_found_in_a_file_and_outside_of_one():
    source = b"def f(x):\n    with open(x) as g:\n        return [h(y) for y in g]\n\n\nk(f'{f(1):>{2}}')\n"
    file = python_source.parse("a.py", source)
    function, last = file.functions[0], file.module.body[-1]
    assert [file.text(each) for each in tree.descendants(function, cst.Call)] == ["open(x)", "h(y)"]
    assert [file.text(each) for each in tree.descendants(last, (cst.Call, cst.Integer))] == ["k(f'{f(1):>{2}}')", "f(1)", "1", "2"]
    assert file.inside(file.calls[0], function) and not file.inside(last, function) and file.inside(last, file.module)
    made = cst.parse_expression("a(b(c))")
    assert len(list(tree.descendants(made, cst.Call))) == 2 and tree.place(made) is None
    assert next(iter(tree.descendants(function, cst.CSTNode))) is function


def test_a_file_that_nobody_holds_is_forgotten():
    file = python_source.parse("a.py", b"x = 1\n")
    node = file.nodes[-1]
    assert tree.place(node) is not None
    del file
    gc.collect()
    assert tree.place(node) is None


FILES = {
    "train_py": "import pack.one\nfrom pack import two as other\nimport importlib\n\nimportlib.import_module('plug')\n",
    "pack__one_py": "def f():\n    pass\n", "pack__two_py": "from .one import f\n\nf()\n", "plug_py": "y = 2\n", "never_py": "f = 1\n",
}  # fmt: skip


def test_the_program_is_what_ran_where_that_was_recorded(tmp_path):
    made = program(tmp_path, **FILES)
    reached = ("train.py", "pack/one.py", "pack/two.py")
    assert Project(made.root, made.command).program == reached
    ran = planning.seen(made.root, made.command, summary(imported=("train.py", "plug.py", "pack/one.py", "gone.py")))
    assert ran.program == ("train.py", "plug.py", "pack/one.py")
    assert ran.has_module("pack.one") and ran.has_module("one") and not ran.has_module("pack.two")
    assert planning.seen(made.root, made.command, summary()).program == reached
    launcher = planning.seen(made.root, made.command, summary(imported=("plug.py",)))
    assert launcher.program == (*reached, "plug.py"), "another process imported what the entry reads"
    unknown = planning.seen(made.root, Command(("./start",)), summary(imported=("plug.py",)))
    assert unknown.program == ("plug.py",)


def test_answers_are_found_once_for_a_program(tmp_path):
    made = program(tmp_path, **FILES)
    project = Project(made.root, made.command)
    file = project.python("pack/two.py")
    assert meant(project, file, file.calls[0]) is meant(project, file, file.calls[0]) and len(meant(project, file, file.calls[0])) == 1
    other = Project(made.root, made.command)
    assert meant(other, other.python("pack/two.py"), other.python("pack/two.py").calls[0]) is not meant(project, file, file.calls[0])


def test_a_file_that_never_ran_refuses_nothing(tmp_path):
    made = program(
        tmp_path,
        train_py="from torch.utils.data import DataLoader\nimport sys\nfrom data import Rows\n\nif len(sys.argv) > 2:\n    import other\n"
        "rows = Rows()\nloader = DataLoader(rows, num_workers=2)\nfor epoch in range(9):\n    for batch in loader:\n        step(batch)\n",
        data_py="class Rows:\n    def __getitem__(self, index):\n        return self.width\n",
        other_py="def change(rows):\n    for width in range(9):\n        rows.width = width\n",
    )
    at = made.line("train.py", "DataLoader(")
    run = summary(loaders=(loader("train", at, num_workers=2, shuffles=False),))
    found = finding("worker_startup", at, ["persistent_workers"])
    _, refused, _ = made.plan(run, found)
    assert any("other.py" in each.reason for each in refused if each.knob == "persistent_workers")
    candidates, _, _ = made.plan(replace(run, imported=("train.py", "data.py")), found)
    assert "persistent_workers" in [each.knob for each in candidates]


def test_spans_are_those_of_libcst():
    odd = (
        "\ufeff# -*- coding: utf-8 -*-\ndef f(é=(1), *, b):\n    return [(é + 'ß')  # ü\n    ]\n\n\nif f: x = (yield_)\n\nclass A(B): pass"
    ).encode()
    for raw in (odd, b"", b"\n", b"x", *(path.read_bytes() for path in sorted((EVERYTHING / "knobs").glob("*.py")))):
        file = python_source.parse("a.py", raw)
        theirs = file.wrapper.resolve(cst.metadata.ByteSpanPositionProvider)
        shift = 3 if raw.startswith(b"\xef\xbb\xbf") else 0
        for node in file.nodes[0 if raw.strip() else 1 :]:
            if node in theirs:
                assert file.span(node) == (theirs[node].start + shift, theirs[node].start + theirs[node].length + shift)
