import time

import torch
import torch.nn.functional as F


class Distiller:
    """The student learns from the labels and from the softened opinion of a fixed teacher on the same windows."""

    def __init__(self, student, teacher, loader, args):
        self.student, self.teacher, self.loader, self.args = student, teacher.eval().requires_grad_(False), loader, args
        self.optimizer = torch.optim.SGD(student.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
        self.step, self.value = 0, float("nan")

    def loss_of(self, windows, labels):
        with torch.inference_mode():
            soft = F.log_softmax(self.teacher(windows) / self.args.heat, dim=1)
        logits = self.student(windows)
        hard = F.cross_entropy(logits, labels)
        match = F.kl_div(F.log_softmax(logits / self.args.heat, dim=1), soft.clone(), log_target=True, reduction="batchmean")
        return (1 - self.args.alpha) * hard + self.args.alpha * self.args.heat**2 * match

    def fit(self, limit: int) -> float:
        begun = time.perf_counter()
        self.student.train()
        while True:
            for windows, labels in self.loader:
                loss = self.loss_of(windows, labels)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                self.step += 1
                self.value = loss.item()
                print(f"step {self.step}/{limit} loss {self.value:.4f}", flush=True)
                if self.step % self.args.check_every == 0:
                    self.check()
                if self.step >= limit:
                    return time.perf_counter() - begun

    @torch.inference_mode()
    def check(self) -> None:
        """Agreement with the teacher on one batch."""
        windows = torch.stack([self.loader.dataset[i][0] for i in range(32)])
        self.student.eval()
        same = (self.student(windows).argmax(1) == self.teacher(windows).argmax(1)).float().mean()
        self.student.train()
        print(f"  agreement {same.item():.2f}")
