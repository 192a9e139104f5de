"""Whatever the program looks like: the edited file parses, only the meant node differs, bytes elsewhere stay, git takes the diff."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from knob_scenes import finding, git, loader, program, repeated, summary

from trainflash.knobs.splices import edited
from trainflash.knobs.surfaces import configs
from trainflash.schema import Location

comments = st.sampled_from(["", "  # few", "  # é ü 漢", "  # num_workers=9"])
endings = st.sampled_from(["\n", "\r\n"])
fillers = st.lists(
    st.sampled_from(["x = 1", "", "# DataLoader(ds, num_workers=7)", 's = """\n  num_workers=0\n"""', "y = [\n    1,\n]", "é = 2"]),
    max_size=4,
)
layouts = st.sampled_from(
    [
        "DataLoader(ds, {}){}",
        "DataLoader(  ds , shuffle = True,{} ){}",
        "DataLoader(\n    ds,{}\n    {},\n)",
        "DataLoader(\n    dataset=ds, {}\n    ,batch_size=4)",
    ]
)
arguments = st.sampled_from(["num_workers=0", "num_workers = 0", "num_workers=(0)", "num_workers=\\\n        0", ""])
few = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def build(layout: str, argument: str, comment: str) -> str:
    if "{},\n)" in layout:
        return layout.format(comment, argument) if argument else layout.format(comment, "batch_size=4")
    if layout.endswith("){}"):
        return layout.format(argument or "batch_size=4", comment)
    return layout.format(f"{argument or 'shuffle=True'}", comment)


@few
@given(fillers, fillers, layouts, arguments, comments, endings, st.booleans(), st.integers(1, 64))
def test_one_argument_changes_and_nothing_else(before, after, layout, argument, comment, ending, last_newline, value):
    rows = ["from torch.utils.data import DataLoader", *before, f"train = {build(layout, argument, comment)}", *after]
    source = ending.join("\n".join(rows).split("\n")) + (ending if last_newline else "")
    with tempfile.TemporaryDirectory() as folder:
        made = program(Path(folder), train_py=source.encode())
        line = next(node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
        run = summary(loaders=(loader(location=Location("train.py", line)),))
        candidate = made.propose("dataloader_workers", run, value=str(value), findings=[finding("input_cpu")])
        git(made.root, "apply", "--whitespace=nowarn", "-", text=candidate.diff)
        result = made.read("train.py")
    assert result.count("\r\n") == result.count("\n") or ending == "\n"
    assert result.endswith("\n") == source.endswith("\n")
    old, new = ast.parse(source), ast.parse(result)
    call = next(node for node in ast.walk(new) if isinstance(node, ast.Call))
    passed = next(each for each in call.keywords if each.arg == "num_workers")
    assert isinstance(passed.value, ast.Constant) and passed.value.value == value
    if argument:
        passed.value.value = 0
    else:
        call.keywords.remove(passed)
    assert ast.dump(new) == ast.dump(old)


@few
@given(
    fillers,
    comments,
    endings,
    st.sampled_from(["", "import os", "import torch", "from a import b", '"""Doc."""', "from __future__ import annotations"]),
)
def test_a_cache_adds_only_a_decorator_and_an_import(before, comment, ending, head):
    rows = [head, *before, "class A:", f"    def f(self, a):{comment}", "        return a", "", "def g(): pass"]
    source = ending.join("\n".join(rows).split("\n"))
    with tempfile.TemporaryDirectory() as folder:
        made = program(Path(folder), train_py=source.encode())
        line = next(node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == "f")
        candidate = made.propose("memoize_function", summary(repeated=(repeated(Location("train.py", line), "A.f"),)))
        git(made.root, "apply", "--whitespace=nowarn", "-", text=candidate.diff)
        result = made.read("train.py")
    new = ast.parse(result)
    function = next(node for node in ast.walk(new) if isinstance(node, ast.FunctionDef) and node.name == "f")
    assert [ast.unparse(each) for each in function.decorator_list] == ["functools.lru_cache(maxsize=None, typed=True)"]
    function.decorator_list.clear()
    imports = [node for node in new.body if isinstance(node, ast.Import) and node.names[0].name == "functools"]
    assert len(imports) == 1
    new.body.remove(imports[0])
    assert ast.dump(new) == ast.dump(ast.parse(source))
    assert ending == "\n" or result.count("\r\n") == result.count("\n")


keys = st.sampled_from(["workers", "batch", "flag", "déjà", "name"])
scalars = st.sampled_from(["0", "4", "true", "no", "On", '"0"', "1e-3", "null", "hello # no", "&a 7", "!!int 3", "'x'"])
trees = st.recursive(scalars, lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3), max_leaves=8)


def written(tree, depth=0) -> str:
    if isinstance(tree, str):
        return f" {tree}\n"
    rows = "".join(f"{'  ' * depth}{key}:{written(value, depth + 1)}" for key, value in tree.items())
    return rows if depth == 0 else f"  # {depth}\n{rows}"


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(keys, trees, min_size=1, max_size=3), endings, st.booleans())
def test_one_yaml_scalar_changes_and_nothing_else(tree, ending, on):
    text = ending.join(written(tree).split("\n"))
    assume(text.count("&a") < 2)
    raw = text.encode()
    document = yaml.safe_load(text)
    for leaf in configs.leaves("c.yaml", raw):
        value = on if isinstance(leaf.value, bool) else 9
        after = edited(raw, [leaf.splice(value)])
        changed = yaml.safe_load(after)
        parent = changed
        for key in leaf.path[:-1]:
            parent = parent[key]
        assert parent[leaf.path[-1]] == value
        parent[leaf.path[-1]] = leaf.value
        assert changed == document
        assert after.count(b"\n") == raw.count(b"\n") and after.count(b"#") == raw.count(b"#")
