#!/bin/sh
# Makes the environment that demo and tests run in: make_environment.sh DIRECTORY
# A torch that PYTHON can already import, and that suits, is used; else the pinned one is installed.
set -eu
directory=$1
python=${PYTHON:-python3.11}
command -v "$python" >/dev/null 2>&1 || python=python3
command -v "$python" >/dev/null 2>&1 || { echo "no Python found: install CPython 3.10 to 3.13, or set PYTHON=/path/to/python" >&2; exit 2; }
"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || {
    echo "$python is $("$python" -V 2>&1), but CPython 3.10 to 3.13 is needed: set PYTHON=/path/to/python" >&2
    exit 2
}

suitable='import re, sys
from importlib.metadata import version
release = tuple(int(part) for part in re.findall(r"\d+", version("torch"))[:2])
sys.exit(not (2, 4) <= release < (3, 0))'
pin="-c constraints.txt"
if "$python" -c "$suitable" 2>/dev/null; then
    "$python" -m venv --system-site-packages "$directory"
    # A Python of an environment hands on the packages of its base and none of its own.
    "$directory/bin/python" -c "$suitable" 2>/dev/null && pin= || rm -rf "$directory"
fi
if [ -z "$pin" ]; then
    echo "using the torch that $python has; installing the rest" >&2
else
    echo "installing torch and the rest into $directory (a few minutes)" >&2
    "$python" -m venv "$directory"
fi
# shellcheck disable=SC2086 # $pin is two words or none
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check $pin -e '.[train,test]'
