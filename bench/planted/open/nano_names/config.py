import os

batch_size = 16
block_size = 64
max_iters = int(os.environ.get("PLANTED_STEPS", 200))
eval_interval = 250 if os.environ.get("PLANTED_FIX") == "1" else 10
eval_iters = 20
learning_rate = 2e-3
n_embd, n_head, n_layer = 64, 4, 2
