"""Train the classifier: python train.py [--resume out/epoch_1.pt]"""

import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

from data import CLASSES, Stripes
from model import ConvNet

SEED = 11
EPOCHS = 4
BATCH = 16
LR = 0.08
WARMUP = 15
WEIGHT_DECAY = 5e-3


def parameter_groups(model):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [
        {"params": decay, "weight_decay": WEIGHT_DECAY},
        {"params": rest, "weight_decay": 0.0},
    ]


def evaluate(model, dataset, criterion):
    model.eval()
    total, hits = 0.0, 0
    for i in range(len(dataset)):
        image, label = dataset[i]
        with torch.no_grad():
            logits = model(image.unsqueeze(0))
        target = torch.tensor([label])
        total += criterion(logits, target).item()
        hits += int(logits.argmax(1).item() == label)
    return total / len(dataset), hits / len(dataset)


def save(path, model, optimizer, scheduler, epoch, step):
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch,
        "step": step,
    }
    torch.save(state, path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    os.makedirs("out", exist_ok=True)

    train_set = Stripes(640, seed=1, train=True)
    val_set = Stripes(120, seed=2, train=False)
    order = torch.Generator()
    loader = DataLoader(train_set, batch_size=BATCH, shuffle=True, generator=order)

    model = ConvNet(CLASSES)
    optimizer = torch.optim.SGD(parameter_groups(model), lr=LR, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.2)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    first_epoch, step = 0, 0
    if args.resume:
        state = torch.load(args.resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        first_epoch, step = state["epoch"], state["step"]

    for epoch in range(first_epoch, EPOCHS):
        torch.manual_seed(SEED + 1000 * epoch)
        order.manual_seed(SEED + epoch)
        model.train()
        running = 0.0
        for images, labels in loader:
            if step < WARMUP:
                for group in optimizer.param_groups:
                    group["lr"] = LR * (step + 1) / WARMUP
            optimizer.zero_grad(set_to_none=False)
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
            step += 1
            if step % 10 == 0:
                print(f"step {step} loss {loss.item():.6f}", flush=True)
        scheduler.step()
        val_loss, val_acc = evaluate(model, val_set, criterion)
        print(f"epoch {epoch + 1} train {running / len(loader):.5f} val {val_loss:.5f} acc {val_acc:.4f}", flush=True)
        save(f"out/epoch_{epoch + 1}.pt", model, optimizer, scheduler, epoch + 1, step)


if __name__ == "__main__":
    main()
