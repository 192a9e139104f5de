#!/bin/bash
# Trains the little translator. Usage: ./run.sh [config]
set -e
cd "$(dirname "$0")"
export PYTHONUNBUFFERED=1
CONFIG="${1:-configs/base.yaml}"
mkdir -p runs
echo "config $CONFIG, started $(date +%H:%M)"
exec python train.py --config "$CONFIG" --out runs/latest
