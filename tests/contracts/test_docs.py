"""Documents can't drift: every command that they show is parsed by the real command line, the Makefile or the scripts folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from trainflash.cli import cli
from trainflash.errors import TrainFlashError
from trainflash.knobs.kinds import EDITS
from trainflash.workflow import explaining

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / name
    for name in ("README.md", "README_zh.md", "CONTRIBUTING.md", "CLAUDE.md", "templates/instructions/trainflash.md", "bench/README.md")
] + [*sorted((ROOT / "skills").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "evals/README.md"]
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
PLACEHOLDERS = {"N": "2"}  # other words in capitals parse as they are


def commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """Every `trainflash`, `make` and `python` command in code style, as words; and whether it stands in a block, where it must be whole."""
    blocks = [line for block in FENCE.findall(text) for line in block.splitlines()]
    inline = INLINE.findall(FENCE.sub("", text))
    for line, whole in [(line, True) for line in blocks] + [(line, False) for line in inline]:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        for command in split_at(words, {"&&", "||", ";", "|"}):
            if command and command[0] in {"trainflash", "make", "python"}:
                yield command, whole


def split_at(words: list[str], separators: set[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word in separators:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def problem(words: list[str], whole: bool) -> str | None:
    """Why this command would not parse; None when it would."""
    head, *rest = words
    if head == "make":
        return make_problem(rest)
    if head == "python":
        if not (rest and rest[0].startswith("scripts/")):
            return None  # the reader's own program
        if not (ROOT / rest[0]).is_file():
            return f"no file {rest[0]}"
        rest = [Path(rest[0]).stem, *rest[1:]]
    return trainflash_problem([PLACEHOLDERS.get(word, word) for word in rest], whole)


def make_problem(words: list[str]) -> str | None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    unknown = [word for word in words if "=" not in word and word not in targets]
    return f"no target {unknown[0]} in the Makefile" if unknown else None


def trainflash_problem(words: list[str], whole: bool) -> str | None:
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if words[0].isupper():
            return None  # COMMAND stands for any of them
        if words[0] not in command.commands:
            if command.invoke_without_command:
                break
            return f"no command {words[0]!r} in {command.name}"
        command, words = command.commands[words[0]], words[1:]
    if "--help" in words or words == ["--version"] or (not words and not whole):
        return None
    if isinstance(command, click.Group) and not command.invoke_without_command:
        return f"{command.name} needs a command"
    try:
        command.make_context(command.name, list(words))
    except click.ClickException as bad:
        return bad.format_message()
    named = words[0] if words else ""
    if command.name in {"explain", "try"} and re.fullmatch(r"[a-z_]+(=\w+)?", named):
        try:
            explaining.explain(named.partition("=")[0])
        except TrainFlashError as bad:
            return bad.message
    return None


def options(command: click.Command) -> set[str]:
    """Every option of `command` and of those below it."""
    found = {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        found |= options(below)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_parses(path):
    wrong = []
    for words, whole in commands(path.read_text(encoding="utf-8")):
        reason = problem(words, whole)
        if reason:
            wrong.append(f"{' '.join(words)}: {reason}")
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_option_named_alone_exists(path):
    known = options(cli) | {"--help", "--version", "--no-index"}  # the last is git's
    named = {word for code in INLINE.findall(FENCE.sub("", path.read_text(encoding="utf-8"))) for word in re.findall(r"^--[a-z-]+", code)}
    assert sorted(named - known) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path):
    folder = ROOT if "instructions" in path.parts else path.parent
    assert [link for link in LINK.findall(path.read_text(encoding="utf-8")) if not (folder / link).exists()] == []


@pytest.mark.parametrize(
    "line",
    [
        "trainflash tuen . -- python train.py",
        "trainflash tune . --bugdet 20m -- python train.py",
        "trainflash tune . --budget soon -- python train.py",
        "trainflash profile captrue",
        "trainflash sandbox",
        "trainflash explain input_cpu collate",
        "trainflash explain input_gpu",
        "trainflash optimize try memoise -- python train.py",
        "trainflash install . --agent emacs",
        "trainflash verify --experiment two",
        "make tset",
        "python scripts/gates.py run",
        "python scripts/diagnose.py --setps 3 -- python train.py",
    ],
)
def test_the_check_can_fail(line):
    [(words, whole)] = commands(f"```bash\n{line}   # comment\n```\n")
    assert problem(words, whole) is not None


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below `command`, itself included, with its words."""
    yield path, command
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        yield from walk(below, (*path, name))


COMMANDS = dict(walk(cli, ("trainflash",)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_begins_with_examples_that_parse(path):
    sentence, examples, *_ = (COMMANDS[path].help or "").split("\n\n")
    assert sentence and not sentence.startswith("\b")
    mark, *lines = examples.split("\n")
    assert mark == "\b", "the examples come first"
    assert all(line.startswith(" ".join(path)) or len(path) == 1 for line in lines if line.startswith("trainflash"))
    wrong = []
    for line in lines:
        shown = re.split(r" {2,}", line)[0]
        for words, whole in commands(f"```bash\n{shown}\n```\n"):
            words = words[: words.index(">")] if ">" in words else words
            wrong += [f"{line}: {reason}"] if (reason := problem(words, whole)) else []
    assert wrong == []


def test_documents_show_what_the_command_line_has():
    shown = {
        words[1] for words, _ in commands((ROOT / "README.md").read_text(encoding="utf-8")) if words[0] == "trainflash" and len(words) > 1
    }
    assert set(cli.commands) - {"demo"} <= shown


def test_both_readmes_have_the_same_headings_and_commands():
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README_zh.md"))
    bare = [FENCE.sub("", text) for text in (english, chinese)]
    levels = [[len(mark) for mark in re.findall(r"^(#+) ", text, re.M)] for text in bare]
    assert levels[0] == levels[1]
    blocks = [
        [shlex.split(line, comments=True) for block in FENCE.findall(text) for line in block.splitlines()] for text in (english, chinese)
    ]
    assert blocks[0] == blocks[1]
    links = [set(LINK.findall(text)) - {"README.md", "README_zh.md"} for text in (english, chinese)]
    assert links[0] == links[1]
    rows = [len(re.findall(r"^\|", text, re.M)) for text in bare]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("name", ["sandbox", "diagnose", "optimize", "verify", "profile", "gate"])
def test_scripts_run_from_anywhere_without_an_installation(name, tmp_path):
    script = ROOT / "scripts" / f"{name}.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 30
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(script), "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"Usage: trainflash {name}")


def test_contributing_names_every_kind_of_edit():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [kind for kind in EDITS if f"`{kind}`" not in text] == []
