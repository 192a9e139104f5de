"""The panel that hangs in the workshop: noised tiles, restored tiles, and the loss so far."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch


class Panel:
    def __init__(self, folder: Path, every: int, dpi: int, columns: int = 4) -> None:
        self.folder, self.every, self.dpi, self.columns = folder, every, dpi, columns
        self.losses: list[float] = []

    def add(self, step: int, loss: float, noised: torch.Tensor, restored: torch.Tensor) -> None:
        self.losses.append(loss)
        if step % self.every == 0:
            self._draw(step, noised, restored)

    def _draw(self, step: int, noised: torch.Tensor, restored: torch.Tensor) -> None:
        figure, axes = plt.subplots(3, self.columns, figsize=(1.5 * self.columns, 4.5))
        for column in range(self.columns):
            for row, pictures in enumerate((noised, restored)):
                axes[row, column].imshow((pictures[column].permute(1, 2, 0).clamp(-1, 1) + 1).numpy() / 2)
                axes[row, column].set_axis_off()
            axes[2, column].plot(self.losses[-50 * (column + 1) :])
        figure.suptitle(f"step {step}")
        figure.savefig(self.folder / f"panel_{step:05d}.png", dpi=self.dpi)
        plt.close(figure)
