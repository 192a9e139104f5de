import torch


class Collocation:
    """Points where the residual was large are kept, the others drawn anew."""

    def __init__(self, count, keep=0.3):
        self.points, self.keep = self.fresh(count), keep

    @staticmethod
    def fresh(count):
        return torch.rand(count, 2) * torch.tensor([2.0, 1.0]) - torch.tensor([1.0, 0.0])

    def renew(self, residual):
        best = residual.abs().flatten().topk(int(self.keep * len(self.points))).indices
        self.points = torch.cat([self.points.detach()[best], self.fresh(len(self.points) - len(best))])
