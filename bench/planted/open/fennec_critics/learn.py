import argparse
import os
import time

import torch
import torch.distributed as dist

import arm_logs
from agent import Agent
from workers import avg_grads, avg_scalar, setup_workers, sync_params


class Learner:
    def __init__(self, agent, replay, args):
        self.agent, self.replay, self.args = agent, replay, args
        self.q_optimizer = torch.optim.Adam(agent.critics.parameters(), lr=args.q_lr, fused=True)
        self.pi_optimizer = torch.optim.Adam(agent.pi.parameters(), lr=args.pi_lr, fused=True)
        self.pairs = torch.Generator().manual_seed(5)
        self.count = 0

    def update(self):
        batch = self.replay.sample(self.args.batch_size)
        pair = torch.randperm(self.args.members, generator=self.pairs)[:2]
        loss = self.agent.q_loss(batch, pair)
        self.q_optimizer.zero_grad()
        loss.backward()
        avg_grads(self.agent.critics)
        self.q_optimizer.step()
        if self.count % self.args.policy_delay == 0:
            self.update_policy(batch)
        self.agent.soft_update()
        every = 500 if os.environ.get("PLANTED_FIX") == "1" else 1
        if self.count % every == 0:
            sync_params(self.agent)
        self.count += 1
        return loss.detach()

    def update_policy(self, batch):
        for p in self.agent.critics.parameters():
            p.requires_grad = False
        self.pi_optimizer.zero_grad()
        self.agent.pi_loss(batch).backward()
        for p in self.agent.critics.parameters():
            p.requires_grad = True
        avg_grads(self.agent.pi)
        self.pi_optimizer.step()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--updates", type=int, default=250)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--members", type=int, default=8)
    p.add_argument("--policy-delay", type=int, default=4)
    p.add_argument("--q-lr", type=float, default=1e-3)
    p.add_argument("--pi-lr", type=float, default=3e-4)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()

    torch.set_num_threads(1)
    rank, world = setup_workers()
    torch.manual_seed(args.seed)
    agent = Agent(arm_logs.STATE, arm_logs.ACTION, members=args.members)
    sync_params(agent)
    replay = arm_logs.Replay(arm_logs.record(20000, 100 + rank), 200 + rank)
    learner = Learner(agent, replay, args)
    updates = int(os.environ.get("PLANTED_STEPS", args.updates))
    dist.barrier()
    begin = time.time()
    for n in range(updates):
        loss = learner.update()
        if n % 100 == 0:
            mean = avg_scalar(loss)
            if rank == 0:
                print(f"update {n}: q loss {mean:.4f} on {world} workers")
    final = avg_scalar(loss)
    if rank == 0:
        print(f"{updates} steps in {time.time() - begin:.2f}s, loss {final:.6f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
