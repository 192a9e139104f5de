import argparse
import os
import time

import torch
from torch import nn

from clinics import found_clinics
from federation import Server
from reports import Board


def arguments():
    p = argparse.ArgumentParser(description="Federated averaging over simulated clinics")
    p.add_argument("--rounds", type=int, default=80)
    p.add_argument("--clinics", type=int, default=24)
    p.add_argument("--invited", type=int, default=3)
    p.add_argument("--local-steps", type=int, default=2)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--report-every", type=int, default=1)
    p.add_argument("--patients", type=int, default=3000)
    return p.parse_args()


def main():
    plan = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(31)
    generator = torch.Generator().manual_seed(32)
    clinics = found_clinics(plan.clinics, 40, plan.patients, generator)
    model = nn.Sequential(nn.Linear(40, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))
    server = Server(model, clinics, Board(clinics), plan)
    per_round = plan.invited * plan.local_steps
    limit = int(os.environ.get("PLANTED_STEPS", plan.rounds * per_round))
    rounds = max(1, limit // per_round)
    start = time.time()
    for number in range(rounds):
        loss = server.round(number, generator)
        if number % 25 == 0:
            print(f"round {number}: loss {loss:.4f}, worst clinic {server.board.worst():.3f}")
    print(f"{rounds * per_round} steps in {time.time() - start:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
