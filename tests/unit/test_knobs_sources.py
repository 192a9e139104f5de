"""Where a value comes from: every way in which programs pass num_workers and batch_size, and every way to be unsure."""

from __future__ import annotations

import shlex
import textwrap
from dataclasses import replace

import pytest
from knob_scenes import added, finding, loader, program, removed, setting, summary

from trainflash.errors import UsageError

HEAD = "import argparse\nimport torch\nfrom torch.utils.data import DataLoader\n"


def workers(tmp_path, source, *, command="python train.py", call="DataLoader(", nth=0, seen=0, value="2", file="train.py", **files):
    """The candidate of dataloader_workers for a program whose training loader is made at the nth line with `call`."""
    made = program(tmp_path, command, train_py=HEAD + textwrap.dedent(source), **files)
    run = summary(loaders=(loader(location=made.line(file, call, nth), num_workers=seen),))
    return made, made.propose("dataloader_workers", run, value=value, findings=[finding("input_cpu")])


@pytest.mark.parametrize(
    ("source", "old", "new"),
    [
        ("train = DataLoader(ds, batch_size=4, num_workers=0)\n", "workers=0", "workers=2"),
        ("train = DataLoader(ds, 4, True, None, None, 0)\n", "None, 0)", "None, 2)"),
        ("train = DataLoader(ds, batch_size=4)\n", "=4)", "=4, num_workers=2)"),
        ("WORKERS = 0  # none\ntrain = DataLoader(ds, num_workers=WORKERS)\n", "= 0  #", "= 2  #"),
        ("kw = {'num_workers': 0, 'pin_memory': False}\ntrain = DataLoader(ds, **kw)\n", ": 0,", ": 2,"),
        ("kw = dict(pin_memory=False)\ntrain = DataLoader(ds, **kw)\n", "**kw)", "**kw, num_workers=2)"),
        ("kw = {}\nkw['num_workers'] = 0\ntrain = DataLoader(ds, **kw)\n", "= 0", "= 2"),
        ("kw = {'num_workers': 0}\nkw = dict(kw)\ntrain = DataLoader(ds, **kw)\n", ": 0", ": 2"),
        ("kw = {'num_workers': 0}\nkw = kw.copy()\ntrain = DataLoader(ds, **kw)\n", ": 0", ": 2"),
        ("train = DataLoader(ds, num_workers=4 if torch.cuda.is_available() else 0)\n", "else 0", "else 2"),
    ],
    ids=[
        "keyword",
        "positional",
        "absent",
        "constant",
        "splat",
        "splat without it",
        "splat set later",
        "copied",
        "own copy",
        "conditional",
    ],
)
def test_spellings_in_one_file(tmp_path, source, old, new):
    made, candidate = workers(tmp_path, source)
    assert [row.replace(old, new) for row in removed(candidate)] == added(candidate)
    assert len(added(candidate)) == 1 and source.count(removed(candidate)[0]) == 1
    assert list(made.apply(candidate)) == ["train.py"]


def test_argument_is_added_in_the_layout_of_the_call(tmp_path):
    made, candidate = workers(
        tmp_path,
        """
        def main():
            train = DataLoader(
                ds,
                batch_size=32,  # small
                shuffle=True,
            )
        """,
    )
    assert removed(candidate) == []
    assert added(candidate) == ["        num_workers=2,"]
    made.apply(candidate)


def test_argument_is_added_behind_a_last_argument_without_comma_and_with_comment(tmp_path):
    _, candidate = workers(tmp_path, "train = DataLoader(\n    ds,\n    shuffle=True  # order\n)\n")
    assert added(candidate) == ["    shuffle=True, num_workers=2  # order"]


ARGPARSE = """
def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", "--num-workers", type=int, default=0, metavar="N", help="data workers")
    parser.add_argument("--lr", type=float, default=0.1)
    return parser.parse_args()

def main():
    args = parse_args()
    train = DataLoader(ds, batch_size=4, num_workers=args.num_workers)
    test = DataLoader(dt, batch_size=4, num_workers=args.num_workers)
    print("workers", args.num_workers)
"""


def test_default_of_an_argparse_option(tmp_path):
    made, candidate = workers(tmp_path, ARGPARSE)
    assert added(candidate) == ['    parser.add_argument("-j", "--num-workers", type=int, default=2, metavar="N", help="data workers")']
    assert str(candidate.location) == str(made.line("train.py", "DataLoader(ds"))
    made.apply(candidate)
    with pytest.raises(UsageError, match="says 2, but the run had 0"):
        workers_again = summary(loaders=(loader(location=made.line("train.py", "DataLoader(ds")),))
        made.propose("dataloader_workers", workers_again, value="2")
    after = summary(loaders=(loader(location=made.line("train.py", "DataLoader(ds"), num_workers=2),))
    with pytest.raises(UsageError, match="already 2"):
        made.propose("dataloader_workers", after, value="2")


@pytest.mark.parametrize("words", ["--num-workers 0", "--num-workers=0", "--num-w 0", "-j 0", "-j0", "--num-workers 0 --lr 1e-3"])
@pytest.mark.parametrize(
    "before", ["python train.py", "python -m train", "torchrun --nproc-per-node 1 train.py", "env A=0 python -u train.py"]
)
def test_option_given_in_the_command_is_changed_there(tmp_path, words, before):
    made, candidate = workers(tmp_path, ARGPARSE, command=f"{before} {words}")
    assert candidate.diff == "" and "--num-workers in the command" in candidate.why
    assert shlex.join(made.command.with_words(candidate.words).argv) == f"{before} {words.replace('0', '2', 1)}"


@pytest.mark.parametrize(
    "words", ["--num-workers", "--num-workers 0 -j 1", "--num-workers four,", "--num-workers=", "--num-workers --lr 1"]
)
def test_option_that_the_command_does_not_give_plainly_is_refused_by_name(tmp_path, words):
    with pytest.raises(UsageError, match=r"is set in the command itself") as caught:
        workers(tmp_path, ARGPARSE, command=f"python train.py {words}")
    assert "--num-workers" in caught.value.mend


def test_a_variable_in_the_command_is_changed_there(tmp_path):
    made = program(tmp_path, "env OMP_NUM_THREADS=16 python train.py", train_py="import torch\n")
    candidate = made.propose("omp_threads", summary(), value="4", findings=(finding("thread_oversubscription"),))
    assert made.command.with_words(candidate.words).argv == ("env", "OMP_NUM_THREADS=4", "python", "train.py")


def test_a_variable_that_is_set_before_the_command_is_given_to_the_candidate(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    made = program(tmp_path, "python train.py", train_py="import torch\n")
    candidate = made.propose("omp_threads", summary(), value="4", findings=(finding("thread_oversubscription"),))
    assert (candidate.diff, candidate.words, candidate.environment) == ("", (), {"OMP_NUM_THREADS": "4"})
    accepted = replace(made.command, env={"OMP_NUM_THREADS": "4"})
    with pytest.raises(UsageError, match="already 4"):
        replace(made, command=accepted).propose("omp_threads", summary(), value="4", findings=(finding("thread_oversubscription"),))


def test_a_variable_that_the_program_sets_itself_is_left_to_it(tmp_path, monkeypatch):
    source = 'import os\nos.environ.setdefault("OMP_NUM_THREADS", "16")\nimport torch\n'
    made, crowded = program(tmp_path, "python train.py", train_py=source), (finding("thread_oversubscription"),)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    with pytest.raises(UsageError, match=r"train\.py sets OMP_NUM_THREADS itself"):
        made.propose("omp_threads", summary(), value="4", findings=crowded)


def test_a_variable_that_nothing_speaks_of_is_given_to_the_candidate_where_the_knob_says_what_holds_without_it(tmp_path, monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    made = program(tmp_path, "python train.py", train_py="import torch\n")
    crowded = (finding("thread_oversubscription"),)
    candidate = made.propose("omp_wait_policy", summary(), findings=crowded)
    assert (candidate.diff, candidate.words, candidate.environment) == ("", (), {"OMP_WAIT_POLICY": "passive"})
    assert candidate.risk == "same"
    accepted = replace(made, command=replace(made.command, env={"OMP_WAIT_POLICY": "passive"}))
    with pytest.raises(UsageError, match="already 'passive'"):
        accepted.propose("omp_wait_policy", summary(), findings=crowded)
    monkeypatch.setenv("KMP_BLOCKTIME", "1")
    with pytest.raises(UsageError, match="KMP_BLOCKTIME, which decides the same"):
        made.propose("omp_wait_policy", summary(), findings=crowded)


SWITCH = """
parser = argparse.ArgumentParser()
parser.add_argument("--keep", action="store_true")
parser.add_argument("--no-pin", dest="pin", action="store_false")
args = parser.parse_args()
train = DataLoader(ds, batch_size=4, num_workers=2, persistent_workers=args.keep)
"""


def kept(tmp_path, source: str, command: str):
    made = program(tmp_path, train_py=f"import argparse\nfrom torch.utils.data import DataLoader\n{source}", command=command)
    at = made.line("train.py", "DataLoader(ds")
    run = summary(loaders=(loader("train", at, num_workers=2, persistent_workers="--keep" in command, shuffles=False),))
    return made, made.propose("persistent_workers", run, findings=(finding("worker_startup", at, ["persistent_workers"]),))


def test_a_switch_is_put_behind_the_command(tmp_path):
    made, candidate = kept(tmp_path, SWITCH, "python train.py --no-pin")
    assert made.command.with_words(candidate.words).argv == ("python", "train.py", "--no-pin", "--keep")


def test_a_switch_of_another_parser_is_left_alone(tmp_path):
    with pytest.raises(UsageError):
        kept(tmp_path, SWITCH + "parser.add_subparsers()\n", "python train.py")


def test_a_switch_is_taken_out_of_the_command(tmp_path):
    source = "parser = argparse.ArgumentParser()\nparser.add_argument('--check', action='store_true')\nargs = parser.parse_args()\n"
    source += "torch.autograd.set_detect_anomaly(args.check)\n"
    made = program(tmp_path, train_py=f"import argparse, torch\n{source}", command="python train.py --check --lr 1")
    at = made.line("train.py", "set_detect")
    run = summary(settings=(setting("anomaly_mode", at),))
    candidate = made.propose("anomaly_off", run, findings=(finding("debug_api", at, ["anomaly_off"]),))
    assert made.command.with_words(candidate.words).argv == ("python", "train.py", "--lr", "1")


@pytest.mark.parametrize("spelled", ["--num-workers 0", "--num-workers=0", "--num-w '0'", "-j 0", "-j0"])
def test_option_given_in_a_shell_script_is_changed_there(tmp_path, spelled):
    script = f"export A=1\nexec python train.py \\\n  {spelled}  # few\n"
    made, candidate = workers(tmp_path, ARGPARSE, command="bash run.sh", run_sh=script)
    assert list(made.apply(candidate)) == ["run.sh"]
    assert made.read("run.sh") == script.replace(spelled, spelled.replace("0", "2"))


BESIDE = """python prepare.py --num-workers 7
python train.py --lr 1 \\
  --num-workers 0 2>&1 | tee log
/usr/bin/python3 evaluate.py --num-workers 9; true
"""


def test_what_a_script_gives_to_other_programs_is_left_alone(tmp_path):
    (tmp_path / "prepare.py").write_text("import sys\nprint(sys.argv)\n")
    (tmp_path / "evaluate.py").write_text("import sys\nprint(sys.argv)\n")
    made, candidate = workers(tmp_path, ARGPARSE + "    loss.backward()\n", command="bash run.sh", run_sh=BESIDE)
    assert made.apply(candidate) and made.read("run.sh") == BESIDE.replace("workers 0", "workers 2")


def test_a_variable_that_another_program_reads_too_is_left_alone(tmp_path):
    (tmp_path / "evaluate.py").write_text("import sys\nprint(sys.argv)\n")
    script = "N=0\npython train.py --num-workers $N\npython evaluate.py --workers $N\n"
    with pytest.raises(UsageError, match="set in the command itself"):
        workers(tmp_path, ARGPARSE, command="bash run.sh", run_sh=script)


def test_an_option_is_not_taken_for_the_prefix_of_another(tmp_path):
    other = '    parser.add_argument("--num", type=int, default=5)\n    parser.add_argument("--lr"'
    _, candidate = workers(tmp_path, ARGPARSE.replace('    parser.add_argument("--lr"', other), command="python train.py --num 3")
    assert candidate.words == () and "default=2" in "".join(added(candidate))
    folder = tmp_path / "alone"
    folder.mkdir()
    made, candidate = workers(folder, ARGPARSE, command="python train.py --num-w 0")
    assert made.command.with_words(candidate.words).argv == ("python", "train.py", "--num-w", "2")


def test_a_variable_that_the_command_sets_through_an_executed_file(tmp_path):
    source = """
    num_workers = 0
    exec(open("configurator.py").read())
    train = DataLoader(ds, batch_size=4, num_workers=num_workers)
    """
    made, candidate = workers(tmp_path, source, command="python train.py --num_workers=1", seen=1)
    assert made.command.with_words(candidate.words).argv == ("python", "train.py", "--num_workers=2")
    made, candidate = workers(tmp_path, source, command="python train.py config_small.py", seen=1, config_small_py="num_workers = 1\n")
    assert list(made.apply(candidate)) == ["config_small.py"] and made.read("config_small.py") == "num_workers = 2\n"
    made, candidate = workers(tmp_path, source)
    assert list(made.apply(candidate)) == ["train.py"]


@pytest.mark.parametrize(
    "library", ["import fire\n{}\nfire.Fire(main)\n", "import typer\napp = typer.Typer()\n@app.command()\n{}\napp()\n"]
)
def test_a_parameter_that_the_command_gives_is_changed_in_the_command(tmp_path, library):
    function = "def main(workers: int = 0, lr: float = 0.1):\n    train = DataLoader(ds, batch_size=4, num_workers=workers)\n"
    made, candidate = workers(tmp_path, library.format(function), command="python train.py --workers 0 --lr 1")
    assert made.command.with_words(candidate.words).argv == ("python", "train.py", "--workers", "2", "--lr", "1")
    (other := tmp_path / "other").mkdir()
    made, candidate = workers(other, library.format(function), command="python train.py --lr 1")
    assert "workers: int = 2" in "".join(added(candidate))


def test_an_argument_that_partial_binds_is_changed_there(tmp_path):
    source = """
    from functools import partial

    def make(ds, num_workers=4):
        return DataLoader(ds, batch_size=4, num_workers=num_workers)

    maker = partial(make, num_workers=0)
    train = maker(ds)
    """
    _, candidate = workers(tmp_path, source)
    assert added(candidate) == ["maker = partial(make, num_workers=2)"]


def test_a_field_of_a_field_that_the_command_gives_is_changed_there(tmp_path):
    source = """
    import dataclasses
    import tyro

    @dataclasses.dataclass
    class Data:
        num_workers: int = 0

    @dataclasses.dataclass
    class Config:
        data: Data

    cfg = tyro.cli(Config)
    train = DataLoader(ds, batch_size=4, num_workers=cfg.data.num_workers)
    """
    made, candidate = workers(tmp_path, source, command="python train.py --data.num-workers 0")
    assert made.command.with_words(candidate.words).argv == ("python", "train.py", "--data.num-workers", "2")


def test_a_modules_variable_that_another_file_assigns_is_followed_there(tmp_path):
    source = ARGPARSE.replace("train = DataLoader(ds, batch_size=4, num_workers=args.num_workers)", "config.WORKERS = args.num_workers")
    source = source.replace("    test = DataLoader(dt, batch_size=4, num_workers=args.num_workers)\n", "").replace(
        '    print("workers", args.num_workers)\n', "    train = DataLoader(ds, batch_size=4, num_workers=config.WORKERS)\n"
    )
    _, candidate = workers(tmp_path, "import config\n" + source, config_py="WORKERS = 0\n")
    assert [line.strip() for line in added(candidate)] == [
        'parser.add_argument("-j", "--num-workers", type=int, default=2, metavar="N", help="data workers")'
    ]


def test_a_key_that_others_take_their_value_from_is_not_changed_alone(tmp_path):
    source = """
    from omegaconf import OmegaConf

    cfg = OmegaConf.load("conf.yaml")
    train = DataLoader(ds, batch_size=4, num_workers=cfg.data.workers)
    """
    with pytest.raises(UsageError, match=r"also used at conf.yaml:3"):
        workers(tmp_path, source, conf_yaml="data:\n  workers: 0\nthreads: ${data.workers}\n")


@pytest.mark.parametrize("words", ["--num-workers $N", '--num-workers "$(nproc)"', "--num-workers 0 -j 1", "--num-workers"])
def test_option_that_a_shell_script_does_not_give_plainly_is_refused(tmp_path, words):
    with pytest.raises(UsageError, match="set in the command itself"):
        workers(tmp_path, ARGPARSE, command="bash run.sh", run_sh=f"python train.py {words}\n")


def test_set_defaults_wins_over_default(tmp_path):
    source = ARGPARSE.replace("return parser", "parser.set_defaults(num_workers=0)\n    return parser")
    _, candidate = workers(tmp_path, source)
    assert added(candidate) == ["    parser.set_defaults(num_workers=2)"]


def test_option_with_another_reader_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"also used at train.py:\d+ \(`args.num_workers`\)"):
        workers(tmp_path, ARGPARSE + "    pool = Pool(args.num_workers)\n")


def test_option_assigned_again_is_refused(tmp_path):
    with pytest.raises(UsageError, match="assigned again here"):
        workers(tmp_path, ARGPARSE.replace("    train =", "    args.num_workers = 0\n    train ="))


def test_click_option(tmp_path):
    source = """
    import click

    @click.command()
    @click.option("--workers", default=0, type=int)
    def main(workers):
        train = DataLoader(ds, num_workers=workers)
    """
    _, candidate = workers(tmp_path, source)
    assert added(candidate) == ['@click.option("--workers", default=2, type=int)']


CONFIG = """# how we train
data: &data
  path: /data   # not ours
  num_workers: 0   # é: too few?
  batch_size: 32
eval:
  num_workers: 0
  list: [1, 2]
"""


@pytest.mark.parametrize(
    "source",
    [
        'import yaml\ncfg = yaml.safe_load(open("conf.yaml"))\ntrain = DataLoader(ds, num_workers=cfg["data"]["num_workers"])\n',
        'import yaml\ncfg = yaml.safe_load(open("conf.yaml"))\nloader = cfg["data"]\n'
        'train = DataLoader(ds, num_workers=loader.get("num_workers", 4))\n',
        "from omegaconf import OmegaConf\ncfg = OmegaConf.load('conf.yaml')\ntrain = DataLoader(ds, num_workers=cfg.data.num_workers)\n",
        "import hydra\n@hydra.main(config_name='conf')\ndef main(cfg):\n"
        "    train = DataLoader(ds, num_workers=int(cfg.data.num_workers))\n",
        "import yaml\nclass Job:\n    def __init__(self, cfg):\n        self.cfg = cfg\n    def loader(self):\n"
        "        return DataLoader(ds, num_workers=self.cfg['data']['num_workers'])\n"
        "def load(path):\n    with open(path) as f:\n        return yaml.safe_load(f)\nJob(load('conf.yaml')).loader()\n",
    ],
    ids=["subscripts", "get of a part", "attributes", "hydra", "class and loading function"],
)
def test_key_of_a_yaml_file_changes_in_one_line(tmp_path, source):
    made, candidate = workers(tmp_path, source, conf_yaml=CONFIG)
    assert removed(candidate) == ["  num_workers: 0   # é: too few?"]
    assert added(candidate) == ["  num_workers: 2   # é: too few?"]
    assert made.apply(candidate) == {"conf.yaml": "1\t1\tconf.yaml"}


def test_splat_of_a_configuration_mapping(tmp_path):
    source = 'import yaml\ncfg = yaml.safe_load(open("c.yml"))\ntrain = DataLoader(ds, **cfg["loader"])\n'
    _, candidate = workers(tmp_path, source, c_yml="loader:\n  num_workers: 0\n  shuffle: true\n")
    assert added(candidate) == ["  num_workers: 2"]


JSON = '{\n\t"note": "é {",\n\t"data": {"num_workers": 0, "x": [1, {"num_workers": 0}]}\n}\n'
TOML = '# top\n[data]\nname = "num_workers = 0"\nnum_workers = 0  # few\n[eval]\nnum_workers = 0\n'


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [("conf_json", JSON, '"num_workers": 2, "x": [1, {"num_workers": 0}]'), ("conf_toml", TOML, "num_workers = 2  # few")],
)
def test_json_and_toml_keys(tmp_path, name, text, line):
    opened = f'import json\ncfg = json.load(open("{name.replace("_", ".")}"))\n'
    made, candidate = workers(tmp_path, opened + 'train = DataLoader(ds, num_workers=cfg["data"]["num_workers"])\n', **{name: text})
    assert len(added(candidate)) == 1 and line in added(candidate)[0]
    made.apply(candidate)


BY_DEVICE = """
cuda = torch.cuda.is_available()
kwargs = {'num_workers': 1, 'pin_memory': True} if cuda else {}
train = DataLoader(ds, batch_size=4, **kwargs)
test = DataLoader(ds, batch_size=8, **kwargs)
"""
BY_UPDATE = """
kwargs = dict(batch_size=4)
if cuda:
    kwargs.update({"num_workers": 1, "pin_memory": True})
train = DataLoader(ds, **kwargs)
"""
OVER = 'train = DataLoader(ds, **{**kwargs, "num_workers": 2})'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (BY_DEVICE, "train = DataLoader(ds, batch_size=4, **{**kwargs, 'num_workers': 2})"),
        (BY_UPDATE, OVER),
        (
            BY_UPDATE.replace('{"num_workers": 1, "pin_memory": True}', "more").replace("if cuda", 'more = {"num_workers": 1}\nif cuda'),
            OVER,
        ),
        (BY_DEVICE.replace("1, 'pin", "args.workers, 'pin"), None),
        (BY_DEVICE.replace("else {}", "else cpu_options()"), None),
        (BY_DEVICE.replace("8, **kwargs", "8, **kwargs, **more").replace("4, **kwargs", "4, **kwargs, **more"), None),
    ],
)
def test_options_that_depend_on_the_device_are_set_behind_them(tmp_path, source, expected):
    if expected is None:
        with pytest.raises(UsageError):
            workers(tmp_path, source)
        return
    made, candidate = workers(tmp_path, source)
    assert added(candidate) == [expected]
    made.apply(candidate)
    with pytest.raises(UsageError, match="already"):
        loaders = (loader(location=made.line("train.py", "DataLoader(", 0), num_workers=2),)
        made.propose("dataloader_workers", summary(loaders=loaders), value="2")


def test_anchor_that_feeds_several_places_is_refused(tmp_path):
    text = "base: &base\n  num_workers: 0\ntrain:\n  <<: *base\neval:\n  <<: *base\n"
    source = 'import yaml\ncfg = yaml.safe_load(open("conf.yaml"))\ntrain = DataLoader(ds, num_workers=cfg["train"]["num_workers"])\n'
    with pytest.raises(UsageError, match=r"also used at conf\.yaml:2"):
        workers(tmp_path, source, conf_yaml=text)


def test_key_in_two_files_is_ambiguous(tmp_path):
    source = "import hydra\n@hydra.main()\ndef main(cfg):\n    train = DataLoader(ds, num_workers=cfg.data.num_workers)\n"
    text = "data:\n  num_workers: 0\n"
    with pytest.raises(UsageError, match="may come from several places"):
        workers(tmp_path, source, conf__a_yaml=text, conf__b_yaml=text)


def test_the_file_that_the_command_names_is_the_one(tmp_path):
    source = "import hydra\n@hydra.main()\ndef main(cfg):\n    train = DataLoader(ds, num_workers=cfg.data.num_workers)\n"
    text = "data:\n  num_workers: 0\n"
    made, candidate = workers(tmp_path, source, command="python train.py --config conf/b.yaml", conf__a_yaml=text, conf__b_yaml=text)
    assert list(made.apply(candidate)) == ["conf/b.yaml"]


def test_field_of_a_dataclass(tmp_path):
    source = """
    from dataclasses import dataclass, field

    @dataclass
    class Config:
        lr: float = 0.1
        num_workers: int = 0

    def main():
        cfg = Config(lr=0.2)
        train = DataLoader(ds, num_workers=cfg.num_workers)
    """
    _, candidate = workers(tmp_path, source)
    assert added(candidate) == ["    num_workers: int = 2"]
    folder = tmp_path / "passed"
    folder.mkdir()
    _, candidate = workers(folder, source.replace("lr=0.2", "num_workers=0"))
    assert added(candidate) == ["    cfg = Config(num_workers=2)"]


def test_default_of_a_parameter_and_value_of_the_only_caller(tmp_path):
    source = """
    def make(ds, workers=0):
        return DataLoader(ds, num_workers=workers, persistent_workers=workers > 0)

    train = make(ds{})
    """
    for number, (passed, line) in enumerate(
        [("", "def make(ds, workers=2):"), (", 0", "train = make(ds, 2)"), (", workers=0", "train = make(ds, workers=2)")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, candidate = workers(folder, source.format(passed))
        assert added(candidate) == [line]


def test_constant_of_another_module(tmp_path):
    made, candidate = workers(
        tmp_path, "from settings import WORKERS\ntrain = DataLoader(ds, num_workers=WORKERS)\n", settings_py="WORKERS = 0\nLR = 1\n"
    )
    assert list(made.apply(candidate)) == ["settings.py"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os\ntrain = DataLoader(ds, num_workers=os.cpu_count() - 8)\n", "computed"),
        ("import os\ntrain = DataLoader(ds, num_workers=int(os.environ['W']))\n", "W is set nowhere"),
        ("n = 0\nn += 0\ntrain = DataLoader(ds, num_workers=n)\n", "computed"),
        ("for n in range(1):\n    train = DataLoader(ds, num_workers=n)\n", "computed"),
        ("train = DataLoader(*parts)\n", "splat"),
        ("train = DataLoader(ds, num_workers=3)\n", "says 3, but the run had 0"),
        ("a = 0\ntrain, test = DataLoader(ds, num_workers=0), DataLoader(dt, num_workers=0)\n", "more than one call"),
    ],
)
def test_refused_with_the_reason(tmp_path, source, reason):
    with pytest.raises(UsageError, match=reason):
        workers(tmp_path, source)


def test_two_branches_are_told_apart_by_what_the_run_saw(tmp_path):
    source = "if torch.cuda.is_available():\n    n = 8\nelse:\n    n = 0\ntrain = DataLoader(ds, num_workers=n)\n"
    _, candidate = workers(tmp_path, source)
    assert added(candidate) == ["    n = 2"]


HELD = """
import argparse
from torch.utils.data import DataLoader


def loader_of(args, data):
    return DataLoader(data, num_workers=args.num_workers)


class Experiment:
    def __init__(self, args):
        self.args = args

    def train(self):
        for batch in loader_of(self.args, data):
            step(batch)


parser = argparse.ArgumentParser()
parser.add_argument("--num_workers", type=int, default=10)
Experiment(parser.parse_args()).train()
"""


def test_an_option_that_an_object_holds_is_found_by_its_name_where_the_run_saw_its_value(tmp_path):
    made = program(tmp_path, train_py=HELD)
    at = made.line("train.py", "DataLoader(data")
    seen = made.propose("dataloader_workers", summary(loaders=(loader("train", at, num_workers=10, shuffles=False),)), value="2")
    assert added(seen) == ['parser.add_argument("--num_workers", type=int, default=2)']
    other = summary(loaders=(loader("train", at, num_workers=3, shuffles=False),))
    with pytest.raises(UsageError):
        made.propose("dataloader_workers", other, value="2")
