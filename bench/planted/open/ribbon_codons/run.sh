#!/usr/bin/env bash
# Trains the codon tagger with the figures of the paper.
set -eo pipefail
cd "$(dirname "$0")"

if [ "${PLANTED_FIX}" = "1" ]; then
    budget=4096
else
    budget=128
fi

exec python -u train.py \
    --genes 3000 --shortest 48 --longest 128 \
    --width 64 --layers 2 --heads 4 \
    --genes-per-step 32 --codons-at-once "$budget" \
    --lr 1e-3 --warmup 40 --evaluate-every 50 --steps "${PLANTED_STEPS:-150}"
