"""Single-shot detector for washers, nuts and keys on a conveyor (synthetic camera frames)."""

import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FIX = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", 240))
CLASSES = ("background", "washer", "nut", "key")
SIZE, STRIDE, BATCH = 80, 8, 8
ANCHOR_SHAPES = ((14, 14), (24, 24))


# ------------------------------------------------------------------ data


def make_frame(rng):
    img = rng.normal(0.35, 0.06, (3, SIZE, SIZE)).astype(np.float32)
    boxes, labels = [], []
    yy, xx = np.mgrid[:SIZE, :SIZE]
    for _ in range(rng.integers(1, 5)):
        label = int(rng.integers(1, 4))
        r = rng.uniform(6, 13)
        cx, cy = rng.uniform(r, SIZE - r, 2)
        dist = np.hypot(xx - cx, yy - cy)
        if label == 1:
            mask = (dist < r) & (dist > 0.5 * r)
        elif label == 2:
            mask = (np.abs(xx - cx) < 0.8 * r) & (np.abs(yy - cy) < 0.8 * r) & (dist > 0.3 * r)
        else:
            mask = (np.abs(yy - cy) < 0.25 * r) & (np.abs(xx - cx) < r)
        img[:, mask] = rng.uniform(0.6, 1.0, (3, 1)).astype(np.float32)
        boxes.append((cx - r, cy - r, cx + r, cy + r))
        labels.append(label)
    return torch.from_numpy(img), torch.tensor(boxes, dtype=torch.float32), torch.tensor(labels)


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    return [make_frame(rng) for _ in range(n)]


def iterate(frames, batch, generator=None):
    order = torch.randperm(len(frames), generator=generator) if generator else torch.arange(len(frames))
    for chunk in order.split(batch):
        part = [frames[i] for i in chunk.tolist()]
        yield torch.stack([p[0] for p in part]), [p[1] for p in part], [p[2] for p in part]


# ------------------------------------------------------------------ boxes


def make_anchors():
    c = (torch.arange(SIZE // STRIDE) + 0.5) * STRIDE
    cy, cx = torch.meshgrid(c, c, indexing="ij")
    out = [torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1) for w, h in ANCHOR_SHAPES]
    return torch.stack(out, 2).reshape(-1, 4)


def box_iou(a, b):
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area_a = (a[:, 2:] - a[:, :2]).prod(-1)
    area_b = (b[:, 2:] - b[:, :2]).prod(-1)
    return inter / (area_a[:, None] + area_b[None] - inter)


def encode(boxes, anchors):
    aw = anchors[:, 2:] - anchors[:, :2]
    bw = boxes[:, 2:] - boxes[:, :2]
    delta = (boxes[:, :2] + boxes[:, 2:] - anchors[:, :2] - anchors[:, 2:]) / (2 * aw)
    return torch.cat([delta / 0.1, torch.log(bw / aw) / 0.2], 1)


def match(anchors, boxes, labels, lo=0.3, hi=0.5):
    """Class per anchor (-1 = ignore, 0 = background) and regression targets."""
    if FIX:
        best_iou, best_box = box_iou(anchors, boxes).max(1)
    else:
        best_iou = torch.zeros(len(anchors))
        best_box = torch.zeros(len(anchors), dtype=torch.long)
        for i, anchor in enumerate(anchors):
            iou = box_iou(anchor[None], boxes)[0]
            best_iou[i], best_box[i] = iou.max(0)
    target = labels[best_box].clone()
    target[best_iou < hi] = -1
    target[best_iou < lo] = 0
    return target, encode(boxes[best_box], anchors)


# ------------------------------------------------------------------ model


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.GroupNorm(4, cout), nn.SiLU())


class Detector(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            conv(3, width, 2),
            conv(width, 2 * width, 2),
            conv(2 * width, 2 * width),
            conv(2 * width, 4 * width, 2),
            conv(4 * width, 4 * width),
        )
        self.cls = nn.Conv2d(4 * width, len(ANCHOR_SHAPES) * len(CLASSES), 3, 1, 1)
        self.reg = nn.Conv2d(4 * width, len(ANCHOR_SHAPES) * 4, 3, 1, 1)

    def forward(self, x):
        f = self.body(x)
        n = x.size(0)
        return (self.cls(f).permute(0, 2, 3, 1).reshape(n, -1, len(CLASSES)), self.reg(f).permute(0, 2, 3, 1).reshape(n, -1, 4))


def detection_loss(logits, deltas, target, goal):
    positive = target > 0
    n_pos = positive.sum().clamp(min=1)
    ce = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-1, reduction="none").view_as(target)
    negative = torch.where(target == 0, ce.detach(), torch.full_like(ce, -1.0))
    k = int(min(3 * n_pos, (target == 0).sum()))
    hard = torch.zeros_like(positive).view(-1)
    hard[negative.flatten().topk(k).indices] = True
    cls = ce[positive | hard.view_as(positive)].sum() / n_pos
    reg = F.smooth_l1_loss(deltas[positive], goal[positive], reduction="sum") / n_pos
    return cls + reg


# ------------------------------------------------------------------ train / test


def batch_loss(model, anchors, images, boxes, labels):
    pairs = [match(anchors, b, l) for b, l in zip(boxes, labels)]
    target = torch.stack([p[0] for p in pairs])
    goal = torch.stack([p[1] for p in pairs])
    return detection_loss(*model(images), target, goal)


def train_one_epoch(model, anchors, frames, opt, done, generator):
    model.train()
    loss = None
    for images, boxes, labels in iterate(frames, BATCH, generator):
        loss = batch_loss(model, anchors, images, boxes, labels)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        done += 1
        if done >= STEPS:
            break
    return loss.item(), done


@torch.no_grad()
def evaluate(model, frames):
    """Share of frames whose most confident anchor names a class that is in the frame."""
    model.eval()
    hits = 0
    for images, _, labels in iterate(frames, 32):
        prob = model(images)[0].softmax(-1)[..., 1:]
        top = prob.flatten(1).argmax(1) % (len(CLASSES) - 1) + 1
        hits += sum(int(t in l) for t, l in zip(top, labels))
    return hits / len(frames)


def main():
    torch.manual_seed(3)
    train_set, test_set = make_set(320, 31), make_set(64, 32)
    anchors = make_anchors()
    model = Detector()
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-3)
    generator = torch.Generator().manual_seed(4)
    done, epoch, last = 0, 0, float("nan")
    t0 = time.perf_counter()
    while done < STEPS:
        last, done = train_one_epoch(model, anchors, train_set, opt, done, generator)
        epoch += 1
        print(f"epoch {epoch}: {done} steps, loss {last:.4f}")
    wall = time.perf_counter() - t0
    print(f"top-1 class hit rate {evaluate(model, test_set):.3f}")
    print(f"{done} steps in {wall:.1f} s, loss {last:.6f}")


if __name__ == "__main__":
    main()
