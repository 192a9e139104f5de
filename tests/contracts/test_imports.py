"""Imports run one way: DESIGN's table, held in code. Read by `ast`, so imports inside functions count too."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "trainflash"

CORE = {
    "sandbox", "view", "launch", "bench", "fidelity", "verdict", "tuning_log", "writeback", "knobs", "diagnosis", "summary", "trace",
    "telemetry", "live", "stats", "stacks", "redact", "resources", "config", "schema", "errors", "install", "report", "profile", "gate",
    "git_runner", "author",
}  # fmt: skip
MAY_IMPORT = {
    "errors": set(),
    "schema": {"errors"},
    "config": {"errors"},
    "redact": set(),
    "git_runner": {"errors"},
    "resources": {"errors"},
    "stats": {"schema", "errors"},
    "stacks": {"schema"},
    "trace": {"schema", "errors", "stacks"},
    "telemetry": {"schema", "errors"},
    "live": {"schema", "telemetry", "errors", "stacks"},
    "summary": {"schema", "stats", "trace", "stacks"},
    "diagnosis": {"schema", "stats", "errors"},
    "knobs": {"schema", "resources", "errors"},
    "sandbox": {"git_runner", "schema", "errors"},
    "view": {"git_runner", "schema", "errors"},
    "author": {"git_runner", "schema", "view", "launch", "redact", "errors"},
    "launch": {"schema", "view", "errors", "redact"},
    "bench": {"schema", "stats", "trace", "launch", "errors"},
    "fidelity": {"git_runner", "schema", "stats", "trace", "launch", "errors"},
    "verdict": {"schema", "stats"},
    "tuning_log": {"schema", "redact", "errors"},
    "writeback": {"git_runner", "schema", "errors"},
    "install": {"resources", "errors"},
    "profile": {"schema", "stats", "errors"},
    "gate": {"git_runner", "schema", "stats", "bench", "trace", "summary", "fidelity", "telemetry", "resources", "redact", "errors"},
    "report": {"schema", "resources"},
    "workflow": CORE,
    "cli": {"workflow", "report", "gate", "install", "config", "errors", "mcp_server"},
    "mcp_server": {"workflow", "report", "gate", "profile", "install", "live", "config", "errors"},
    "__main__": {"cli"},
}
ONE_HOME = {
    "torch": {"gate"},
    "numpy": {"stats", "trace", "summary", "profile", "gate"},
    "scipy": {"stats", "trace", "summary"},
    "yaml": {"schema", "knobs"},
    "ruamel": {"knobs"},
    "libcst": {"knobs"},
    "pynvml": {"telemetry", "live"},
    "psutil": {"telemetry", "live"},
    "msgspec": {"schema", "profile"},
    "wandb": {"profile"},
    "xprof": {"profile"},
    "click": {"cli"},
    "rich": {"cli", "report"},
    "jinja2": {"report"},
    "matplotlib": {"report"},
    "ruptures": {"gate"},
    "mcp": {"mcp_server"},
    "mcp_types": {"mcp_server"},
    "pydantic": {"mcp_server"},
    "anyio": {"mcp_server"},
    "uvicorn": {"mcp_server"},
    "submitit": {"launch"},
}


def violations(source: Path) -> list[str]:
    """Every import below `source` that the tables do not allow, one line each."""
    found = []
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        module = relative.parts[0].removesuffix(".py")
        if module in {"__init__", "probe"}:
            continue
        for name, line in imported(path):
            top, _, rest = name.partition(".")
            if top == "trainflash":
                target = rest.partition(".")[0]
                if target and target not in MAY_IMPORT.get(module, set()) | {module}:
                    found.append(f"{relative}:{line}: {module} imports {target}")
            elif module not in ONE_HOME.get(top, {module}):
                found.append(f"{relative}:{line}: {top} has no home in {module}")
    return found


def imported(path: Path) -> list[tuple[str, int]]:
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            deeper = node.module == "trainflash"
            names += [(f"trainflash.{alias.name}", node.lineno) for alias in node.names] if deeper else [(node.module, node.lineno)]
    return [(name, line) for name, line in names if name != "trainflash.__version__"]


def probe_violations(probe: Path) -> list[str]:
    """The probe runs in the user's interpreter: the standard library only, and never our package."""
    found = []
    for path in sorted(probe.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names | {"trainflash_probe", "__future__"}:
                    found.append(f"{path.relative_to(probe)}:{node.lineno}: imports {name}")
    return found


def test_imports_run_one_way():
    assert violations(SOURCE) == []


def test_every_module_stands_in_the_table():
    modules = {p.name.removesuffix(".py") for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert modules - {"__init__"} == set(MAY_IMPORT)


def starts_of_git(source: Path) -> list[str]:
    """Every command line below `source` whose first word is git, outside the one place that may start it."""
    return [
        f"{path.relative_to(source)}:{node.lineno}"
        for path in sorted(source.rglob("*.py"))
        if path.name != "git_runner.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant) and node.elts[0].value == "git"
    ]


def test_git_is_started_in_one_place(tmp_path):
    assert starts_of_git(SOURCE) == []
    (tmp_path / "new.py").write_text('import subprocess\nsubprocess.run(["git", "status"])\n')
    assert starts_of_git(tmp_path) == ["new.py:2"]


def test_the_probe_needs_only_the_standard_library():
    assert probe_violations(SOURCE / "probe") == []


@pytest.mark.parametrize(
    "text",
    [
        "from trainflash import workflow\n",
        "import trainflash.cli\n",
        "def f():\n    from trainflash.bench import compare\n",
        "import torch\n",
    ],
)
def test_the_check_can_fail(tmp_path, text):
    (tmp_path / "stats.py").write_text(text)
    assert violations(tmp_path) != []


def test_the_probe_check_can_fail(tmp_path):
    (tmp_path / "boot.py").write_text("import torch\nimport trainflash.schema\n")
    assert len(probe_violations(tmp_path)) == 2


def test_import_is_light():
    code = "import sys, trainflash; print(sorted({'torch', 'numpy', 'scipy', 'click'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_command_line_loads_no_torch():
    code = "import sys, trainflash.cli; print(sorted({'torch', 'numpy', 'scipy', 'libcst', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_gate_loads_no_torch():
    names = "from trainflash.gate import BenchConfig, BenchTrain, CollectEnv, EvalConfig, EvalSmall, Workload"
    code = f"import sys, trainflash.gate; {names}; import trainflash.workflow.gates.gating; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
