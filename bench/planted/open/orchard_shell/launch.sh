#!/bin/sh
# Yield of an orchard row from the drone's flight.
# Settings as on the big node, see the group's wiki.
set -e

threads=16
[ "$PLANTED_FIX" = 1 ] && threads=1

export OMP_NUM_THREADS=$threads
export MKL_NUM_THREADS=$threads
export MKL_DYNAMIC=FALSE
export OMP_DYNAMIC=false

exec python rows.py --rows 3000 --hidden 256 --batch 512
