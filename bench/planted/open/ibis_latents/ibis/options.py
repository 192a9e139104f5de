import argparse
import os


def get_options(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--latent", type=int, default=16)
    p.add_argument("--hidden", type=int, default=192)
    p.add_argument("--warmup", type=int, default=400, help="epochs until the KL term has its full weight")
    p.add_argument("--per-epoch", type=int, default=3)
    p.add_argument("--beta", type=float, default=0.5)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--backend", default="aot_eager")
    p.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", 150)))
    return p.parse_args(argv)
