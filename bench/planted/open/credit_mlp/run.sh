#!/bin/sh
# Same settings as on the 16-core node.
if [ "$PLANTED_FIX" = "1" ]; then
    export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
else
    export OMP_NUM_THREADS=16 MKL_NUM_THREADS=16
fi
exec python train.py --epochs 20
