"""Loops that a framework hides; the timers sit in the methods that it lets its users override. Arguments: style, file for the marks."""

import sys
import tempfile

import torch
from own_loops import STEPS, Rows, network
from timed import step, timed, write
from torch import nn
from torch.utils.data import DataLoader


class TimedLoader(DataLoader):
    """A loader that times its own batches."""

    def __iter__(self):
        with timed("Data"):
            inner = super().__iter__()
        return TimedBatches(inner)


class TimedBatches:
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return self

    def __next__(self):
        with timed("Data"):
            return next(self.inner)


def timed_method(owner, name, phase):
    original = getattr(owner, name)

    def method(*args, **kwargs):
        with timed(phase):
            return original(*args, **kwargs)

    setattr(owner, name, method)


def hugging_face():
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def forward(self, x, labels):
            logits = self.net(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    class Timed(Trainer):
        def get_batch_samples(self, *args, **kwargs):
            if self.state.global_step:
                step()
            with timed("Data"):
                return super().get_batch_samples(*args, **kwargs)

        def compute_loss(self, *args, **kwargs):
            with timed("Fwd"):
                return super().compute_loss(*args, **kwargs)

        def evaluate(self, *args, **kwargs):
            with timed("Eval"):
                return super().evaluate(*args, **kwargs)

        def _save_checkpoint(self, *args, **kwargs):
            with timed("Ckpt"):
                return super()._save_checkpoint(*args, **kwargs)

        def log(self, *args, **kwargs):
            with timed("Log"):
                return super().log(*args, **kwargs)

    def collate(rows):
        return {"x": torch.stack([row for row, _ in rows]), "labels": torch.tensor([label for _, label in rows])}

    class TimedUpdate(TrainerCallback):
        """The Trainer's call of its optimizer, as the loops below time theirs."""

        def on_pre_optimizer_step(self, *args, **kwargs):
            self.updating = timed("Opt")
            self.updating.__enter__()

        def on_optimizer_step(self, *args, **kwargs):
            self.updating.__exit__()

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), max_steps=STEPS, per_device_train_batch_size=64, eval_strategy="steps", eval_steps=20, save_steps=40,
        logging_steps=10, report_to=[], use_cpu=True, disable_tqdm=True, per_device_eval_batch_size=64,
    )  # fmt: skip
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    trainer = Timed(
        model, arguments, train_dataset=Rows(), eval_dataset=Rows(256), data_collator=collate, optimizers=(optimizer, schedule),
        callbacks=[TimedUpdate()],
    )  # fmt: skip
    timed_method(trainer.accelerator, "backward", "Bwd")
    trainer.train()
    step()


def accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Rows(), batch_size=64))
    criterion = nn.CrossEntropyLoss()
    iterator = iter(loader)
    for _ in range(STEPS):
        with timed("Data"):
            x, y = next(iterator)
        with timed("Fwd"):
            loss = criterion(model(x), y)
        with timed("Bwd"):
            accelerator.backward(loss)
        with timed("Opt"):
            optimizer.step()
        optimizer.zero_grad()
        step()


def fabric():
    from lightning.fabric import Fabric

    runner = Fabric(accelerator="cpu", devices=1)
    model = network()
    model, optimizer = runner.setup(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    loader = runner.setup_dataloaders(DataLoader(Rows(), batch_size=64))
    criterion = nn.CrossEntropyLoss()
    iterator = iter(loader)
    for _ in range(STEPS):
        with timed("Data"):
            x, y = next(iterator)
        with timed("Fwd"):
            loss = criterion(model(x), y)
        with timed("Bwd"):
            runner.backward(loss)
        with timed("Opt"):
            optimizer.step()
        optimizer.zero_grad()
        step()


def lightning_modules():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = network()

        def training_step(self, batch, index):
            with timed("Fwd"):
                loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            with timed("Log"):
                self.log("loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("held_out", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

        def backward(self, loss):
            with timed("Bwd"):
                loss.backward()

        def optimizer_step(self, *args, **kwargs):
            with timed("Opt"):
                super().optimizer_step(*args, **kwargs)

        def on_train_batch_end(self, *args):
            step()

        def on_validation_start(self):
            self.evaluating = timed("Eval")
            self.evaluating.__enter__()

        def on_validation_end(self):
            self.evaluating.__exit__()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    return lightning, Module()


def lightning(**options):
    package, module = lightning_modules()
    trainer = package.Trainer(
        accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, default_root_dir=tempfile.mkdtemp(), **options,
    )  # fmt: skip
    trainer.fit(module, TimedLoader(Rows(64 * STEPS // 2), batch_size=64))


def lightning_validates():
    package, module = lightning_modules()
    trainer = package.Trainer(
        accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, val_check_interval=20, default_root_dir=tempfile.mkdtemp(),
    )  # fmt: skip
    trainer.fit(module, TimedLoader(Rows(64 * STEPS // 2), batch_size=64), DataLoader(Rows(256), batch_size=64))


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step()
    globals()[sys.argv[1]]()
    write()
