"""`python -I -S enter.py SPEC.json -- ARGV…`: enter the view that SPEC describes, then become the program ARGV.

Standard library only. Exit code 125: the view could not be entered; 126 and 127 as a shell says them: the program cannot be
executed, or is not there.
"""

import json
import os
import signal
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import landlock
import mounts
import syscalls


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        spec = json.load(file)
    program = sys.argv[3:]
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        notes = mounts.enter(spec) if spec["mode"] == "mount" else []
        if spec["mode"] == "landlock":
            landlock.confine(spec["writable"])
        os.chdir(spec["cwd"])  # by its path: the old one still is the unprotected original
        syscalls.die_with_parent(signal.SIGKILL)
    except OSError as bad:
        print(f"trainflash: the view cannot be entered: {bad.strerror or bad}", file=sys.stderr)
        return 125
    if spec["notes"] and notes:
        print("\n".join(f"trainflash: not layered: {note}" for note in notes), file=sys.stderr)
    os.environ["PWD"] = spec["cwd"]
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores these for itself, and an ignored signal would be inherited
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as bad:
        print(f"trainflash: {program[0]}: {bad.strerror}", file=sys.stderr)
        return 127 if isinstance(bad, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
