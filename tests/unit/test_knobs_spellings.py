"""Every knob in every way that programs write it: the right change or a clear refusal, never a wrong edit, and nothing the second time.

The matrix over calls is made from the knob files themselves; what is no plain argument of a call stands in `knob_spellings`.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knob_runs import applied, run_for
from knob_scenes import Program, added, diagnosis, removed
from knob_spellings import CASES, Case

from trainflash import knobs
from trainflash.errors import UsageError
from trainflash.knobs.kinds import CallArgument
from trainflash.schema import Command, Location

ELSEWHERE = (
    "memoize_function",
    "checkpoint_cadence",
    "eval_cadence",
    "logging_cadence",
    "anomaly_off",
    "torch_threads",
)


def written(root: Path, files: dict[str, str], command: str) -> Program:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    return Program(root, Command(tuple(command.split())))


def place(text: str, mark: str) -> Location | None:
    return next((Location("train.py", number) for number, row in enumerate(text.splitlines(), 1) if mark in row), None)


def proposed(made: Program, knob: str, here: str, value: str | None, facts: dict):
    text = (made.root / "train.py").read_text(encoding="utf-8")
    at = place(text, here) or Location("train.py", 1)
    optimizer = place(text, "optim.")
    facts = {name: _fact(value) for name, value in facts.items()}
    run, found = run_for(knobs.get(knob), at, optimizer, **{"train_loader__location": place(text, "DataLoader(") or at, **facts})
    return knobs.propose(
        knobs.get(knob), value, None, diagnosis=diagnosis(found), summary=run, checkout=made.root, command=made.command, memory_bytes=10**9
    )


def _fact(value: object) -> object:
    """A place is written as [file, line], a shape as its numbers."""
    if not isinstance(value, list):
        return value
    return Location(*value) if isinstance(value[0], str) else tuple(value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.knob}-{case.how}")
def test_spelling(tmp_path, case: Case):
    made = written(tmp_path, {"train.py": case.source, **case.files}, case.command)
    if case.refused:
        with pytest.raises(UsageError, match=re.escape(case.refused)):
            proposed(made, case.knob, case.here, case.value, case.facts)
        return
    candidate = proposed(made, case.knob, case.here, case.value, case.facts)
    assert (removed(candidate), added(candidate)) == (case.gone, case.new)
    command = made.command.with_words(candidate.words)
    assert (" ".join(command.argv), candidate.environment) == (case.typed or case.command, case.given)
    made = Program(made.root, replace(command, env={**command.env, **candidate.environment}))
    for name, text in applied(made.root, candidate.diff).items():
        (made.root / name).write_text(text, encoding="utf-8")
        if name.endswith(".py"):
            compile(text, name, "exec")
    with pytest.raises(UsageError):  # a second application changes nothing
        proposed(made, case.knob, case.here, case.value, case.facts)


fillers = st.lists(st.sampled_from(["zz = 1", "", "# a note", 'zs = """\n  = text(\n"""', "zb = [\n    1,\n]", "zé = 2  # ü"]), max_size=3)
EDITED = [case for case in CASES if not case.refused and not case.files]
edited = st.sampled_from([case for case in EDITED if not any(isinstance(value, list) for value in case.facts.values())])  # lines move


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(edited, fillers, fillers, st.sampled_from(["\n", "\r\n"]))
def test_only_the_meant_nodes_differ(tmp_path_factory, case, before, after, ending):
    """What stands before and behind the place stays, and the edit is the one that is made without it."""
    root = tmp_path_factory.mktemp("p")
    head = [row for row in case.source.split("\n") if row.startswith(("import ", "from "))]
    body = case.source.removeprefix("\n".join(head) + "\n")
    if not case.source.startswith("\n".join(head)):
        return
    source = "\n".join([*head, *before, body.rstrip("\n"), *after, ""])
    made = written(root, {"train.py": source.replace("\n", ending)}, case.command)
    candidate = proposed(made, case.knob, case.here, case.value, case.facts)
    result = applied(root, candidate.diff)["train.py"]
    assert ending == "\n" or result.count("\r\n") == result.count("\n")
    bare = result.replace("\r\n", "\n")
    alone = written(tmp_path_factory.mktemp("q"), {"train.py": case.source}, case.command)
    plain = applied(alone.root, proposed(alone, case.knob, case.here, case.value, case.facts).diff)["train.py"]
    lead = list(before)
    while lead and lead[-1] in ("", "# a note"):  # a comment goes with the statement behind it
        lead.pop()
    assert "\n".join(lead) in bare and "\n".join(after) in bare
    assert bare.count("# a note") == [*before, *after].count("# a note")
    rest = [ast.dump(node) for node in ast.parse(bare).body]
    for node in ast.parse("\n".join([*before, *after])).body:
        rest.remove(ast.dump(node))
    assert rest == [ast.dump(node) for node in ast.parse(plain).body]


# The matrix over calls ------------------------------------------------------------------------------------------------------------


def arguments(edit) -> list[CallArgument]:
    """The plain call arguments in an edit."""
    if isinstance(edit, CallArgument):
        return [] if edit.since else [edit]
    return []


PLAIN = [(knob, edit) for knob in knobs.catalogue() for each in knob.edits for edit in arguments(each)]
STARTS = {"DataLoader": "data", "TrainingArguments": "'out'", "DistributedDataParallel": "net", "compile": "net"}
CALLS = {"*.gradient_checkpointing_enable": "net.gradient_checkpointing_enable"}


def values(knob, edit: CallArgument) -> tuple[object, object, str | None]:
    """What stands there, what shall stand there, and how that is asked for."""
    if edit.written is not None:
        return "former", edit.written, None
    first = knob.values[0]
    if isinstance(first, bool):
        return (not first), first, str(first).lower()
    if isinstance(first, str) and first[:1] in "'\"":
        return "former", ast.literal_eval(first), ast.literal_eval(first)
    demanded = next((each.equals for each in knob.requires if each.fact == edit.fact and each.equals is not None), None)
    return (2, 4, "4") if demanded is None else (demanded, first, str(first))


def spellings(call: str, start: str, name: str, old: object, new: object) -> dict[str, tuple[dict[str, str], str, str]]:
    """Files, the command, and the file in which the value stands, by the way of writing it."""
    head = f"import argparse, configparser, json, tomllib, yaml, hydra\nfrom dataclasses import dataclass\nimport {call.split('.')[0]}\n"
    first = f"{start}, " if start else ""
    made = f"made = {call}({first}{name}={{}})\n"
    train = lambda body: {"train.py": head + body}  # noqa: E731
    declared = f"parser.add_argument('--the-option', type={type(old).__name__}, default={old!r})"
    parse = f"parser = argparse.ArgumentParser()\n{declared}\nargs = parser.parse_args()\n"
    yaml_read = "cfg = yaml.safe_load(open('conf.yaml'))\n"
    word = old if isinstance(old, str) else json.dumps(old)
    configured = f"# kept\nbase: &base\n  other: 1   # one\ntrain:\n  <<: *base\n  the_option: {word}   # here\n"
    kept = {
        "keyword": (train(made.format(repr(old))), "", "train.py"),
        "spread": (train(f"made = {call}(\n    {first}\n    {name}={old!r},  # why\n)\n".replace("    \n", "")), "", "train.py"),
        "splat": (train(f"kw = {{'{name}': {old!r}, 'x': 1}}\nmade = {call}({first}**kw)\n"), "", "train.py"),
        "dict splat": (train(f"made = {call}({first}**dict({name}={old!r}))\n"), "", "train.py"),
        "constant": (train(f"VALUE = {old!r}  # set\n" + made.format("VALUE")), "", "train.py"),
        "argparse": (train(parse + made.format("args.the_option")), "", "train.py"),
        "config object": (
            train(f"@dataclass\nclass Config:\n    the_option: object = {old!r}\n\ncfg = Config()\n" + made.format("cfg.the_option")),
            "",
            "train.py",
        ),
        "wrapped": (
            train(f"def build(value):\n    made = {call}({first}{name}=value)\n    return made\n\nbuild({old!r})\n"),
            "",
            "train.py",
        ),
        "yaml": ({**train(yaml_read + made.format("cfg['train']['the_option']")), "conf.yaml": configured}, "", "conf.yaml"),
        "json": (
            {
                **train("cfg = json.load(open('conf.json'))\n" + made.format("cfg['the_option']")),
                "conf.json": json.dumps({"the_option": old}),
            },
            "",
            "conf.json",
        ),
        "ini": (
            {
                **train("cfg = configparser.ConfigParser()\ncfg.read('conf.ini')\n" + made.format("cfg['train']['the_option']")),
                "conf.ini": f"[train]\n; kept\nthe_option = {word}\n",
            },
            "",
            "conf.ini",
        ),
        "already": (train(made.format(repr(new))), "", "refused"),
    }
    if not isinstance(old, str):
        kept["toml"] = (
            {
                **train("cfg = tomllib.load(open('conf.toml', 'rb'))\n" + made.format("cfg['train']['the_option']")),
                "conf.toml": f"[train]\nthe_option = {word}  # here\n",
            },
            "",
            "conf.toml",
        )
    if not isinstance(old, bool):
        script = f"exec python train.py \\\n  --the-option {old}\n"
        kept["flag in a script"] = ({**train(parse + made.format("args.the_option")), "run.sh": script}, "bash run.sh", "run.sh")
        kept["flag in the command"] = (train(parse + made.format("args.the_option")), f"python train.py --the-option {old}", "command")
        hydra = (
            "@hydra.main(config_path='.', config_name='conf')\ndef main(cfg):\n    made = "
            + made.format("cfg.train.the_option").partition("= ")[2]
        )
        override = f"python train.py train.the_option={old}\n"
        kept["hydra override"] = ({**train(hydra), "conf.yaml": configured, "run.sh": override}, "bash run.sh", "run.sh")
    return kept


ALWAYS = ("keyword", "splat", "argparse", "yaml", "wrapped", "already")  # the others, and most knobs of these, run with the full suite
MATRIX = [(knob, edit, how) for knob, edit in PLAIN for how in spellings("a.b", "", "x", values(knob, edit)[0], values(knob, edit)[1])]


def facts_for(edit: CallArgument, old: object) -> dict[str, object]:
    role = {"role": "eval"} if (edit.fact or "").startswith("eval_loader") else {}
    return {**role, **({edit.fact.replace(".", "__"): old} if edit.fact else {})}


def fast(number: int, how: str) -> bool:
    """A part of the matrix that holds every spelling and every knob."""
    return (number % 5 == 0 and how in ALWAYS) or number % 11 == 0


@pytest.mark.parametrize(
    ("knob", "edit", "how"),
    [
        pytest.param(k, e, how, id=f"{k.name}-{e.calls[0].split('.')[-1]}-{how}", marks=[] if fast(n, how) else pytest.mark.full)
        for n, (k, e, how) in enumerate(MATRIX)
    ],
)
def test_argument_in_every_spelling(tmp_path, knob, edit, how):
    old, new, value = values(knob, edit)
    call = CALLS.get(edit.calls[0], edit.calls[0].replace("*.", "net."))
    files, command, where = spellings(call, STARTS.get(call.split(".")[-1], ""), edit.argument, old, new)[how]
    files = {name: text + "".join(f"# {word}\n" for word in edit.beside if name == "train.py") for name, text in files.items()}
    made = written(tmp_path, files, command or "python train.py")
    facts = facts_for(edit, old)
    if where == "refused":
        with pytest.raises(UsageError):
            proposed(made, knob.name, f"{call}(", value, facts)
        return
    candidate = proposed(made, knob.name, f"{call}(", value, facts)
    if where == "command":
        changed_to = made.command.with_words(candidate.words)
        assert (candidate.diff, changed_to.argv) == ("", ("python", "train.py", "--the-option", str(new)))
        with pytest.raises(UsageError):  # a second application changes nothing
            proposed(Program(made.root, changed_to), knob.name, f"{call}(", value, facts_for(edit, new))
        return
    result = applied(made.root, candidate.diff)
    assert list(result) == [where]
    before = files[where]
    if where == "train.py":
        nodes = [[node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)] for text in (before, result[where])]
        changed = [(a, b) for a, b in zip(*nodes, strict=True) if a != b or type(a) is not type(b)]
        assert changed == [(old, new)]
        assert [type(node) for node in ast.walk(ast.parse(before))] == [type(node) for node in ast.walk(ast.parse(result[where]))]
    else:
        spelled = [json.dumps(each) if where == "conf.json" or not isinstance(each, str) else each for each in (old, new)]
        assert result[where] == before.replace(*spelled, 1) if where != "run.sh" else before.replace(f"{old}\n", f"{new}\n", 1)
    for name, text in result.items():
        (made.root / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError):  # a second application changes nothing
        proposed(made, knob.name, f"{call}(", value, facts_for(edit, new))


def test_every_knob_has_at_least_three_spellings():
    counted = {knob.name: 0 for knob in knobs.catalogue()}
    for case in CASES:
        counted[case.knob] += 1
    for knob, _, _ in MATRIX:
        counted[knob.name] += 1
    few = {name: count for name, count in counted.items() if count < 3 and name not in ELSEWHERE}
    assert not few


@pytest.mark.parametrize("knob", [k for k in knobs.catalogue() if any(c.equals == "cuda" for c in k.requires)], ids=lambda knob: knob.name)
def test_what_only_a_gpu_can_show_is_refused_on_a_cpu(tmp_path, knob):
    made = written(tmp_path, {"train.py": "import torch\n"}, "python train.py")
    reason = next(condition.otherwise for condition in knob.requires if condition.equals == "cuda")
    with pytest.raises(UsageError, match=re.escape(reason)):
        proposed(made, knob.name, "import", None, {"device": "cpu"})
