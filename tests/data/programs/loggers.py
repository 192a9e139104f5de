"""A loop that logs: `loggers.py tensorboard|wandb|picture|canvas|rich DIRECTORY`."""

import sys

import torch
from styles import Slow, loader, loss_of

torch.set_num_threads(1)
if sys.argv[1] == "wandb":
    import wandb

    run = wandb.init(mode="offline", dir=sys.argv[2], project="p")

    def write(loss, step):
        (wandb if step % 2 else run).log({"loss": loss}, step=step)
elif sys.argv[1] in ("picture", "canvas"):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    def write(loss, step):
        figure, axes = plt.subplots()
        axes.plot([step], [loss])
        if sys.argv[1] == "canvas":
            figure.canvas.draw()
        else:
            plt.savefig(f"{sys.argv[2]}/loss.png")
        plt.close(figure)
elif sys.argv[1] == "rich":
    from rich.console import Console

    console = Console()

    def write(loss, step):
        console.print(f"[bold]{step}[/bold] {loss:.3f}")
else:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(sys.argv[2])

    def write(loss, step):
        writer.add_scalar("loss", loss, step)


model = Slow()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(loader()):
    optimizer.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    write(loss.item(), step)
