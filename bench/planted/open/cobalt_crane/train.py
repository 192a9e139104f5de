import time
import argparse
import os
from pathlib import Path

import torch

from corpus import ReviewSet
from nets import BagStudent, Pair, ReviewEncoder
from trainer import Trainer

STEPS = int(os.environ.get("PLANTED_STEPS", "600"))
HERE = Path(__file__).parent


def parse_args():
    p = argparse.ArgumentParser(description="distil a review-rating encoder into a bag of words")
    p.add_argument("--vocab", type=int, default=64000)
    p.add_argument("--teacher-width", type=int, default=256)
    p.add_argument("--teacher-dim", type=int, default=96)
    p.add_argument("--teacher-layers", type=int, default=1)
    p.add_argument("--buckets", type=int, default=4096)
    p.add_argument("--student-dim", type=int, default=48)
    p.add_argument("--length", type=int, default=16)
    p.add_argument("--train-size", type=int, default=6400)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--log-every", type=int, default=40)
    p.add_argument("--eval-every", type=int, default=100)
    p.add_argument("--save-every", type=int, default=5)
    p.add_argument("--seed", type=int, default=31)
    p.add_argument("--out", default=str(HERE / "ckpt"))
    return p.parse_args()


def main():
    began = time.perf_counter()
    args = parse_args()
    torch.manual_seed(args.seed)
    train_set = ReviewSet(args.train_size, args.vocab, args.length, args.seed)
    dev_set = ReviewSet(512, args.vocab, args.length, args.seed + 1)
    teacher = ReviewEncoder(args.vocab, args.teacher_width, args.teacher_dim, args.teacher_layers, classes=5)
    student = BagStudent(args.buckets, args.student_dim, classes=5)
    trainer = Trainer(Pair(teacher, student), train_set, dev_set, args)
    trainer.fit(STEPS)
    print(f"dev {trainer.evaluate():.4f}")
    print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {trainer.loss.item():.6f}")


if __name__ == "__main__":
    main()
