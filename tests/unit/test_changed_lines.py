"""Which statements of a candidate a comparison may have passed without running."""

from __future__ import annotations

import difflib
import subprocess
import textwrap

import pytest

from trainflash.fidelity import changed_lines, unrun
from trainflash.fidelity.unrun import Seen
from trainflash.schema import Command, Sandbox


def source(old: str, new: str, *, main: bool = True, whole: bool = True) -> changed_lines.Source | None:
    before, after = (textwrap.dedent(text).lstrip("\n") for text in (old, new))
    blocks = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    changed = frozenset(line for kind, _, _, first, last in blocks if kind != "equal" for line in range(first + 1, last + 1))
    return changed_lines.read("train.py", after.encode(), changed, main=main, whole=whole)


def asked(old: str, new: str, **how: bool) -> list[str]:
    """The stretches that are asked about."""
    found = source(old, new, **how)
    return [] if found is None else list(found.ranges(found.statements))


LOOP = "for step in range(9):\n    loss = train()\n"


def test_a_new_branch_in_a_loop_is_asked_about():
    assert asked(LOOP, LOOP + "    if loss < 0.7:\n        skip()\n") == ["train.py:3-4"]


def test_a_new_else_is_asked_about_and_what_stands_beside_it_is_not():
    old = "if a:\n    x = 1\ny = 2\n"
    assert asked(old, "if a:\n    x = 1\nelse:\n    x = 3\ny = 2\n") == ["train.py:4"]


def test_what_a_changed_condition_decides_is_asked_about():
    old = "if a > 1:\n    x = 1\n    if b:\n        y = 1\nelif c:\n    z = 1\nelse:\n    w = 1\n"
    assert asked(old, old.replace("a > 1", "a > 2")) == ["train.py:2-3", "train.py:5"]
    assert asked(old, old.replace("elif c", "elif d")) == ["train.py:5-8"]


def test_the_head_of_a_branch_that_certainly_decides_is_not_asked_about():
    found = source("", "if a:\n    x = 1\n")
    assert found is not None
    assert [each.watched for each in found.statements] == [(2, 2)]
    assert asked("x = 1\n", "x = 2\n") == []


def test_branches_that_only_raise_or_say_something_are_left_out():
    new = """
        for step in range(9):
            loss = train()
            if loss != loss:
                raise ValueError("NaN")
            elif loss > 9:
                logger.warning("high")
                warnings.warn("high")
            try:
                save()
            except OSError:
                print("full disk")
                sys.exit(1)
            else:
                pass
    """
    assert asked(LOOP, new) == ["train.py:3", "train.py:5", "train.py:8-9"]
    assert asked("", "def f():\n    raise NotImplementedError\n") == []


def test_a_new_function_counts_by_its_body():
    new = "def fast(x):\n    '''Faster.'''\n    y = x * 2\n    return y\n"
    found = source("", new)
    assert found is not None
    assert {(each.shown, each.watched) for each in found.statements} == {
        ((1, 1), (2, 4)),
        ((3, 3), (3, 3)),
        ((4, 4), (4, 4)),
    }
    assert asked("", new + "fast(1)\n") == [], "the module calls it"
    assert asked("", new + "fast(1)\n", whole=False) == ["train.py:1-5"], "a run that was cut may end before any line"
    assert asked("", new + "fast(1)\n", main=False) == ["train.py:1-5"], "a module may never be imported"
    assert asked("", new + "if a:\n    fast(1)\n") == ["train.py:1-4", "train.py:6"]
    assert asked("", new + "b = a and fast(1)\n") == ["train.py:1-4"]


def test_the_functions_that_certain_code_calls_are_certain_until_one_may_leave():
    old = "def main():\n    {}\n    if a:\n        return\n    x = 1\n\nif __name__ == '__main__':\n    sys.exit(main())\n"
    new = old.format("w = 1").replace("x = 1", "x = 2")
    assert asked(old.format("v = 1"), new) == ["train.py:5"]
    assert asked("def f():\n    yield 1\nf()\n", "def f():\n    yield 2\nf()\n") == ["train.py:2"], "a generator's body does not run"


def test_a_changed_decorator_or_signature_asks_whether_the_function_ran():
    old = "def evaluate(model):\n    return 1\nif a:\n    evaluate(2)\n"
    found = source(old, "@torch.no_grad()\n" + old)
    assert found is not None
    assert [(each.shown, each.watched, each.function) for each in found.statements] == [((1, 2), (3, 3), 1)]
    assert asked(old, old.replace("(model)", "(model, *,\n    k=1)")) == ["train.py:1-2"]


def test_only_deleted_lines_and_comments_ask_nothing():
    assert asked(LOOP + "    extra()\n", LOOP) == []
    assert asked(LOOP, LOOP + "    # a comment\n") == []
    assert asked("def f():\n    return 1\n", "def f():\n    '''What it is.'''\n    return 1\n") == []


def test_statements_of_many_lines_comprehensions_and_matches():
    assert asked(LOOP, LOOP + "    rows = [\n        x\n        for x in y\n        if x\n    ]\n") == ["train.py:3-7"]
    old = "match a:\n    case 1:\n        x = 1\n    case _:\n        x = 2\n"
    assert asked(old, old.replace("case 1", "case 7")) == ["train.py:3"]
    assert asked(old, old.replace("match a", "match b")) == ["train.py:3", "train.py:5"]
    assert asked(old, old.replace("    case _", "    case 2 if b:\n        x = 3\n    case _")) == ["train.py:5"]


def test_a_block_beside_its_condition_is_watched_on_a_line_of_its_own():
    found = source(LOOP, LOOP + "    if loss < 0.7: continue\n    else: update(); log()\n    last()\n")
    assert found is not None and found.text is not None
    assert found.text.decode().splitlines()[2:] == [
        "    if loss < 0.7:",
        "        continue",
        "    else:",
        "        update(); log()",
        "    last()",
    ]
    assert [each.watched for each in found.statements] == [(3, 3), (4, 4), (6, 6), (7, 7)]
    assert [each.shown for each in found.statements] == [(3, 3), (3, 3), (4, 4), (5, 5)]
    assert found.ranges(found.statements[1:2]) == ("train.py:3",)
    untouched = source("if a: b()\n", "if a: b()\nif c:\n    d()\n")
    assert untouched is not None and untouched.text is None


def test_what_cannot_be_compiled_asks_nothing():
    assert source("", "def (:\n") is None


def test_a_block_for_type_checkers_or_another_program_is_left_out():
    old, new = "import a\n", "import a\nif TYPE_CHECKING:\n    import b\nif __name__ == '__main__':\n    check()\n"
    assert asked(old, new, main=False) == ["train.py:2", "train.py:4"]
    assert asked(old, new, whole=False) == ["train.py:2", "train.py:4-5"]


@pytest.fixture
def box(tmp_path) -> Sandbox:
    """Two checkouts of one repository, whose project lies in a folder of it."""
    baseline, worktree = tmp_path / "baseline", tmp_path / "worktree"
    (baseline / "ml").mkdir(parents=True)
    (baseline / "ml" / "train.py").write_text("for a in b:\n    x = 1\n")
    (baseline / "shared.py").write_text("y = 1\n")
    (baseline / "notes.txt").write_text("text\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(baseline))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first"), ("worktree", "add", "-q", str(worktree))):
        subprocess.run([*git, *words], check=True)
    place = str(tmp_path)
    return Sandbox(f"{place}/own/ml", f"{place}/own", place, str(baseline), str(worktree), "HEAD", None, "", "mount")


def test_files_are_named_from_the_projects_folder(box):
    worktree = changed_lines.Path(box.worktree)
    (worktree / "ml" / "train.py").write_text("for a in b:\n    x = 1\n    x += 1\n")
    (worktree / "ml" / "fast.py").write_text("z = 1\n")
    (worktree / "shared.py").write_text("y = 2\n")
    (worktree / "notes.txt").write_text("if a:\n    b\n")
    found = changed_lines.find(box, Command(("python", "train.py")), whole=True)
    assert [(each.path, each.ranges(each.statements)) for each in found] == [
        ("fast.py", ("fast.py:1",)),
        ("train.py", ("train.py:3",)),
        ("../shared.py", ("../shared.py:1",)),
    ]


def test_equal_checkouts_ask_nothing(box):
    assert changed_lines.find(box, Command(("python", "train.py")), whole=False) == ()


NEW = source(LOOP + "y = 1\n", LOOP + "    if loss < 0.7:\n        skip()\ny = 1\ndef fast():\n    a()\n    b()\n")


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (Seen(), ["train.py"]),
        (Seen(entered=frozenset({("train.py", 1)})), ["train.py:3-4", "train.py:6-8"]),
        (Seen(entered=frozenset({("train.py", 1)}), ran=frozenset({("train.py", (3, 3))})), ["train.py:4", "train.py:6-8"]),
        (Seen(entered=frozenset({("train.py", 1)}), device=True), ["train.py:3-4"]),
        (Seen(entered=frozenset({("train.py", 1)}), compiled=(("train.py", (6, 8)),)), ["train.py:3-4"]),
    ],
)
def test_what_never_ran_is_said_unless_nobody_can_tell(seen, said):
    assert NEW is not None
    assert list(unrun.never_ran(NEW, seen)) == said


def test_a_torn_line_leaves_it_open(tmp_path):
    (tmp_path / "ran-7.jsonl").write_bytes(b'{"k": "begun"}\n{"k": "ran", "file": "train.py", "lines": [3, 4]}\n{"k": "ra')
    seen = unrun.read(tmp_path)
    assert (seen.traced, seen.ran, seen.unsure) == ({"7"}, {("train.py", (3, 4))}, False)
    (tmp_path / "ran-8.jsonl").write_bytes(b"\0\0\n")
    assert unrun.read(tmp_path).unsure
