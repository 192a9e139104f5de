import copy
import os

import torch
from torch.nn.functional import binary_cross_entropy_with_logits


def local_update(model, clinic, plan, generator):
    optimizer = torch.optim.SGD(model.parameters(), lr=plan.lr, momentum=0.9)
    for _ in range(plan.local_steps):
        x, y = clinic.minibatch(plan.batch, generator)
        loss = binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def merge(shared, members):
    for name, target in shared.named_parameters():
        target.copy_(torch.stack([dict(m.named_parameters())[name] for m in members]).mean(0))


class Server:
    def __init__(self, model, clinics, board, plan):
        self.model, self.clinics, self.board, self.plan = model, clinics, board, plan
        self.every = 20 if os.environ.get("PLANTED_FIX") == "1" else plan.report_every

    def round(self, number, generator):
        invited = torch.randperm(len(self.clinics), generator=generator)[: self.plan.invited].tolist()
        members, losses = [], []
        for index in invited:
            member = copy.deepcopy(self.model)
            losses.append(local_update(member, self.clinics[index], self.plan, generator))
            members.append(member)
        merge(self.model, members)
        if number % self.every == 0:
            self.board.update(self.model)
        return sum(losses) / len(losses)
