#!/bin/sh
# Trains the phoneme recogniser with the settings of the lab.
set -e
cd "$(dirname "$0")"
exec python -m box.main --settings settings.json "$@"
