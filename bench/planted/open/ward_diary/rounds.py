"""What is done now and then: scores on stays that were held out, and a copy of the weights."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


def concordance(risk: torch.Tensor, ended: torch.Tensor) -> float:
    """The share of pairs that are ordered rightly."""
    difference = risk[ended > 0.5][:, None] - risk[ended < 0.5][None, :]
    return ((difference > 0).float() + 0.5 * (difference == 0).float()).mean().item()


@torch.no_grad()
def score(accelerator: Accelerator, model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    risks, ends = [], []
    for batch in loader:
        risk = model(batch["codes"], batch["gaps"])
        risk, ended = accelerator.gather_for_metrics((risk, batch["readmitted"]))
        risks.append(risk)
        ends.append(ended)
    model.train()
    return concordance(torch.cat(risks), torch.cat(ends))
