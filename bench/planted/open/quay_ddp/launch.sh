#!/bin/sh
# two ranks on this machine
export OMP_NUM_THREADS=1
exec python -m torch.distributed.run --standalone --nproc_per_node "${RANKS:-2}" ddp.py "$@"
