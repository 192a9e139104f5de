#!/usr/bin/env bash
# One run with the usual settings; more arguments go to the program.
set -euo pipefail
cd "$(dirname "$0")"
export LOAD_STORE="${LOAD_STORE:-$(mktemp -d)}"
trap 'rm -rf "$LOAD_STORE"' EXIT
python forecast.py --width 256 --depth 3 "$@"
