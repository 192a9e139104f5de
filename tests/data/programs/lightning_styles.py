"""Lightning's Trainer and Fabric on a tiny model: data that sleeps, an evaluation every eight steps, a checkpoint."""

import sys
import time

import lightning
import torch
from styles import STEPS, Rows, Slow, loader, loss_of


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Slow()

    def training_step(self, batch, index):
        loss = loss_of(self.net, *batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        time.sleep(0.001)
        self.log("held_out", loss_of(self.net, *batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def quiet(**options):
    return lightning.Trainer(
        accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=sys.argv[2], **options
    )


def trainer():
    held_out = torch.utils.data.DataLoader(torch.utils.data.Subset(Rows(), range(8)), batch_size=4)
    runner = quiet(max_epochs=1, val_check_interval=8, enable_checkpointing=False)
    runner.fit(Module(), loader(), held_out)
    runner.save_checkpoint(sys.argv[2] + "/last.ckpt")
    print("steps", runner.global_step)


def accumulating_trainer():
    runner = quiet(max_epochs=1, accumulate_grad_batches=4, enable_checkpointing=False)
    runner.fit(Module(), loader())
    print("steps", runner.global_step)


def fabric():
    from lightning.fabric import Fabric

    def slowly(run):
        """A strategy does work of its own around torch's call."""
        return lambda *args, **kwargs: time.sleep(0.003) or run(*args, **kwargs)

    runner = Fabric(accelerator="cpu", devices=1)
    runner.strategy.backward, runner.strategy.optimizer_step = slowly(runner.strategy.backward), slowly(runner.strategy.optimizer_step)
    model = Slow()
    model, optimizer = runner.setup(model, torch.optim.SGD(model.parameters(), lr=0.01))
    for x, y in runner.setup_dataloaders(loader()):
        optimizer.zero_grad()
        runner.backward(loss_of(model, x, y))
        optimizer.step()
    print("steps", STEPS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
