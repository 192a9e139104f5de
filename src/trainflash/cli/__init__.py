"""The command line. It parses, calls the workflow and prints; errors of ours are caught here, once.

One file per group of commands, listed explicitly below. Heavy imports happen inside the commands, so that `--help` is quick.
"""

from __future__ import annotations

import sys

import click

from trainflash import __version__
from trainflash.cli import (
    diagnose,
    doctor,
    gate,
    gate_compare,
    gate_upkeep,
    history,
    install,
    mcp,
    optimize,
    profile,
    sandbox,
    tune,
    verify,
    writeback,
)
from trainflash.cli.examples_first import arrange
from trainflash.errors import EXIT_INTERRUPTED, TrainFlashError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="trainflash")
def cli() -> None:
    """Make a PyTorch training program faster, and prove it.

    \b
    trainflash tune . -- python train.py         the whole loop, in a sandbox
    trainflash diagnose -- python train.py       where does the time go, and why?
    trainflash writeback --accepted              show the proven change, and ask for approval

    Nothing of your training changes before you approve exactly the diff that was shown.
    """


for command in (
    tune.tune, tune.demo, sandbox.group, diagnose.diagnose, optimize.group, verify.verify, writeback.writeback, profile.group, gate.group,
    history.log, history.report, history.explain, doctor.doctor, install.install, mcp.mcp,
):  # fmt: skip
    cli.add_command(command)
for command in (*gate_compare.COMMANDS, *gate_upkeep.COMMANDS):
    gate.group.add_command(command)
arrange(cli)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (see `errors`)."""
    arguments = sys.argv[1:] if argv is None else argv
    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        code = cli.main(args=arguments, prog_name="trainflash", standalone_mode=False)
        return int(code or 0)
    except TrainFlashError as problem:
        return _fail(problem, arguments, as_json)
    except click.ClickException as problem:
        context = getattr(problem, "ctx", None)
        mend = f"see `{context.command_path} --help`" if context else "see `trainflash --help`"
        return _fail(UsageError(problem.format_message(), mend), arguments, as_json)
    except (KeyboardInterrupt, click.Abort):
        _fail(TrainFlashError("interrupted; what was measured is kept, and your project is as it was", "run it again"), arguments, as_json)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, such as `| head`
        return 0
    except OSError as bad:
        where = f"{bad.filename}: " if bad.filename else ""
        return _fail(
            TrainFlashError(f"{where}{bad.strerror or bad}", "make room or give access there, then run it again"), arguments, as_json
        )


def _fail(problem: TrainFlashError, arguments: list[str], as_json: bool) -> int:
    from trainflash import report
    from trainflash.cli.output import Output

    output = Output(as_json)
    if as_json:
        from trainflash.workflow import answers

        names = [word for word in arguments[:2] if word.isidentifier()] or ["trainflash"]
        group = isinstance(cli.commands.get(names[0]), click.Group)
        output.answer(answers.error("_".join(names if group else names[:1]), problem))
    output.stderr.print(report.error(problem))
    return problem.exit_code
