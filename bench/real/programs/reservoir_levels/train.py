"""Forecast the next day of a reservoir's level; the loop by PyTorch-Ignite."""
import argparse

import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, TensorboardLogger, TerminateOnNan, global_step_from_engine
from ignite.metrics import Loss, MeanAbsoluteError, RunningAverage
from ignite.utils import manual_seed
from torch import nn

from data import build_loaders
from model import LevelForecaster


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=48)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--out", default="logs")
    args = parser.parse_args()

    manual_seed(7)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, val_loader = build_loaders(batch_size=args.batch_size)
    model = LevelForecaster(hidden=args.hidden).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    criterion = nn.SmoothL1Loss()

    def train_step(engine, batch):
        model.train()
        past, known, target = (x.to(device) for x in batch)
        optimizer.zero_grad()
        loss = criterion(model(past, known, target), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    @torch.no_grad()
    def val_step(engine, batch):
        model.eval()
        past, known, target = (x.to(device) for x in batch)
        return model(past, known), target

    trainer, evaluator = Engine(train_step), Engine(val_step)
    RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
    Loss(criterion).attach(evaluator, "loss")
    MeanAbsoluteError().attach(evaluator, "mae")
    MeanAbsoluteError(output_transform=lambda out: (out[0][:, -1], out[1][:, -1])).attach(evaluator, "mae_last_hour")

    trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())

    @trainer.on(Events.ITERATION_COMPLETED(every=20))
    def show(engine):
        print(f"epoch {engine.state.epoch} iteration {engine.state.iteration} loss {engine.state.metrics['loss']:.4f}")

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate(engine):
        state = evaluator.run(val_loader)
        plateau.step(state.metrics["loss"])
        print(f"epoch {engine.state.epoch}: " + " ".join(f"{k} {v:.4f}" for k, v in state.metrics.items())
              + f" lr {optimizer.param_groups[0]['lr']:.2g}")

    score = Checkpoint.get_default_score_fn("loss", -1.0)
    evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(patience=8, score_function=score, trainer=trainer))
    evaluator.add_event_handler(Events.COMPLETED, Checkpoint(
        {"model": model, "optimizer": optimizer}, DiskSaver(args.out, create_dir=True, require_empty=False),
        n_saved=2, filename_prefix="best", score_function=score, score_name="neg_loss",
        global_step_transform=global_step_from_engine(trainer)))

    with TensorboardLogger(log_dir=args.out) as logger:
        logger.attach_output_handler(trainer, Events.ITERATION_COMPLETED(every=10), tag="train", metric_names=["loss"])
        logger.attach_output_handler(evaluator, Events.COMPLETED, tag="val", metric_names="all",
                                     global_step_transform=global_step_from_engine(trainer))
        logger.attach_opt_params_handler(trainer, Events.EPOCH_COMPLETED, optimizer=optimizer)
        trainer.run(train_loader, max_epochs=args.epochs)


if __name__ == "__main__":
    main()
