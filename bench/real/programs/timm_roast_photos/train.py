"""Roast level from a photograph of the beans: a small timm network with mixup, label smoothing and an EMA of the weights."""
import argparse
import os
import time

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy, random_seed

from data import make_loaders


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default="photos")
    p.add_argument("--model", default="mobilenetv3_small_075")
    p.add_argument("--image-size", type=int, default=96)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--weight-decay", type=float, default=0.02)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--output", default="output")
    return p.parse_args()


def train_one_epoch(epoch, model, ema, loader, mixup, loss_fn, optimizer, scheduler, device):
    model.train()
    losses = AverageMeter()
    updates = epoch * len(loader)
    for step, (images, target) in enumerate(loader):
        images, target = images.to(device), target.to(device)
        images, target = mixup(images, target)
        loss = loss_fn(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        updates += 1
        ema.update(model, step=updates)
        scheduler.step_update(num_updates=updates)
        losses.update(loss.item(), images.size(0))
        if step % 10 == 0:
            print(f"epoch {epoch} step {step}/{len(loader)} loss {losses.val:.4f} ({losses.avg:.4f})", flush=True)
    return losses.avg


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    top1 = AverageMeter()
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        (acc,) = accuracy(model(images), target, topk=(1,))
        top1.update(acc.item(), images.size(0))
    return top1.avg


def main():
    args = parse_args()
    os.makedirs(args.output, exist_ok=True)
    random_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader, val_loader = make_loaders(args.data, args.image_size, args.batch_size, args.workers)
    classes = train_loader.dataset.classes
    model = timm.create_model(args.model, pretrained=False, num_classes=len(classes), drop_rate=0.1).to(device)
    ema = ModelEmaV3(model, decay=0.99, use_warmup=True)
    mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=0.5, prob=0.8, label_smoothing=0.1, num_classes=len(classes))
    loss_fn = SoftTargetCrossEntropy()
    optimizer = create_optimizer_v2(model, opt="adamw", lr=args.lr, weight_decay=args.weight_decay)
    steps = len(train_loader)
    scheduler = CosineLRScheduler(
        optimizer, t_initial=args.epochs * steps, lr_min=1e-5, warmup_t=2 * steps, warmup_lr_init=1e-5, t_in_epochs=False
    )

    best = 0.0
    for epoch in range(args.epochs):
        start = time.time()
        loss = train_one_epoch(epoch, model, ema, train_loader, mixup, loss_fn, optimizer, scheduler, device)
        acc = validate(model, val_loader, device)
        ema_acc = validate(ema.module, val_loader, device)
        print(f"epoch {epoch}: loss {loss:.4f} acc {acc:.2f} ema {ema_acc:.2f} ({time.time() - start:.1f} s)", flush=True)
        if ema_acc > best:
            best = ema_acc
            torch.save({"model": ema.module.state_dict(), "classes": classes}, os.path.join(args.output, "best.pt"))
    print(f"best {best:.2f}")


if __name__ == "__main__":
    main()
