#!/bin/sh
# Trains on the well logs. Extra arguments go to the program.
set -e
cd "$(dirname "$0")"
export PYTHONUNBUFFERED=1
WELLS=${WELLS:-40}
exec python main.py --wells "$WELLS" --batch 24 --updates "${UPDATES:-4000}" "$@"
