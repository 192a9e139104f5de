"""All the usual knobs at once, as a blog post says: the arm that stands beside `optimize auto`.

Workers with persistence and pinned memory on every DataLoader, fused optimizers, TF32, `compile()` on what the optimizer trains, and
the same by name on Hugging Face's arguments. Nothing is measured or asked; arguments that are written already stay.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
LOADER = {"num_workers": str(min(os.cpu_count() or 1, 16)), "pin_memory": "True", "persistent_workers": "True"}
ARGUMENTS = {
    "dataloader_num_workers": LOADER["num_workers"], "dataloader_pin_memory": "True", "dataloader_persistent_workers": "True",
    "optim": '"adamw_torch_fused"', "torch_compile": "True",
}  # fmt: skip


def apply(folder: Path) -> list[str]:
    """Edit all Python files of a project; returns what was done."""
    done = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        changed, notes = edited(source)
        if changed != source:
            compile(changed, str(path), "exec")
            path.write_text(changed, encoding="utf-8")
            done += [f"{path.relative_to(folder)}: {note}" for note in notes]
    return done


def edited(source: str) -> tuple[str, list[str]]:
    """One file with the knobs that apply to it."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    inserts: list[tuple[int, str]] = []
    notes: list[str] = []

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column

    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (wanted := _wanted(node)):
            given = {keyword.arg for keyword in node.keywords}
            if None in given or (name_of(node) == "DataLoader" and len(node.args) > 2):
                continue
            new = {name: value for name, value in wanted.items() if name not in given}
            if any(keyword.arg == "num_workers" and getattr(keyword.value, "value", 1) == 0 for keyword in node.keywords):
                new.pop("persistent_workers", None)  # torch refuses it there
            if new:
                last = max(
                    [*node.args, *(keyword.value for keyword in node.keywords)], key=lambda each: (each.end_lineno, each.end_col_offset)
                )
                text = "".join(f", {name}={value}" for name, value in new.items())
                inserts.append((offset(last.end_lineno, last.end_col_offset), text))
                notes.append(f"{name_of(node)}{text}")
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and (model := _trained(node.value)):
            indent = " " * node.col_offset
            inserts.append((offset(node.lineno, node.col_offset), f"{model}.compile()\n{indent}"))
            notes.append(f"{model}.compile()")
    imports = [node for node in tree.body if isinstance(node, ast.Import) and any(alias.name == "torch" for alias in node.names)]
    if imports:
        end = imports[0]
        inserts.append((offset(end.end_lineno, end.end_col_offset), '\ntorch.set_float32_matmul_precision("high")'))
        notes.append("TF32")
    data = source.encode()
    for place, text in sorted(inserts, reverse=True):
        data = data[:place] + text.encode() + data[place:]
    return data.decode(), notes


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _wanted(call: ast.Call) -> dict[str, str]:
    name = name_of(call)
    if name == "DataLoader" and (call.args or call.keywords):
        return LOADER
    if name in {"TrainingArguments", "Seq2SeqTrainingArguments"}:
        return ARGUMENTS
    return {"fused": "True"} if name in FUSED and call.args else {}


def _trained(call: ast.Call) -> str | None:
    """The name of the module whose parameters an optimizer is built on."""
    if name_of(call) not in FUSED or not call.args:
        return None
    first = call.args[0]
    inner = first.func if isinstance(first, ast.Call) else None
    is_parameters = isinstance(inner, ast.Attribute) and inner.attr == "parameters" and isinstance(inner.value, ast.Name)
    return inner.value.id if is_parameters else None
