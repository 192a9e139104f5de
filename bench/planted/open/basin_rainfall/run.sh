#!/usr/bin/env bash
# Builds the archive in a scratch folder and trains on it.
set -euo pipefail
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python make_archive.py "$scratch" --years 3
python forecast.py --archive "$scratch" --history 72 --hidden 96 "$@"
