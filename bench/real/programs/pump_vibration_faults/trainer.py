import logging
import math
import os
import time

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from utils.metrics import MultiLabelMeter

log = logging.getLogger("trainer")


class Trainer:
    def __init__(self, model, loaders, pos_weight, names, cfg, device):
        self.model, self.device = model.to(device), device
        self.train_loader, self.val_loader = loaders
        self.cfg = cfg["trainer"]
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight.to(device))
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["optim"]["lr"], weight_decay=cfg["optim"]["weight_decay"])
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._schedule(cfg["optim"]["warmup_epochs"]))
        self.dir = os.path.join(self.cfg["save_dir"], cfg["name"])
        os.makedirs(self.dir, exist_ok=True)
        self.writer = SummaryWriter(self.dir)
        self.train_meter, self.val_meter = MultiLabelMeter(names), MultiLabelMeter(names)
        self.best, self.step = -math.inf, 0

    def _schedule(self, warmup_epochs):
        warmup = warmup_epochs * len(self.train_loader)
        total = self.cfg["epochs"] * len(self.train_loader)

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))
        return factor

    def fit(self):
        for epoch in range(self.cfg["epochs"]):
            start = time.time()
            train = self._train_epoch(epoch)
            val = self._validate()
            for key, value in val.items():
                self.writer.add_scalar(f"val/{key}", value, epoch)
            log.info("epoch %d  train loss %.4f ap %.3f  val loss %.4f ap %.3f auc %.3f  (%.1f s)", epoch, train["loss"],
                     train["macro_ap"], val["loss"], val["macro_ap"], val["macro_auc"], time.time() - start)
            score = val[self.cfg["monitor"].split("/")[1]]
            if score > self.best:
                self.best = score
                self._save(epoch, "best.pt")
            self._save(epoch, "last.pt")
        self.writer.close()
        return self.best

    def _train_epoch(self, epoch):
        self.model.train()
        self.train_meter.reset()
        for i, (x, y) in enumerate(self.train_loader):
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(x)
            loss = self.criterion(logits, y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["grad_clip"])
            self.optimizer.step()
            self.scheduler.step()

            self.train_meter.update(logits, y, loss.item())
            scores = self.train_meter.compute()
            if i % self.cfg["log_interval"] == 0:
                for key, value in scores.items():
                    self.writer.add_scalar(f"train/{key}", value, self.step)
                self.writer.add_scalar("train/lr", self.scheduler.get_last_lr()[0], self.step)
                log.info("epoch %d [%d/%d] loss %.4f ap %.3f", epoch, i, len(self.train_loader), scores["loss"], scores["macro_ap"])
            self.step += 1
        return scores

    @torch.no_grad()
    def _validate(self):
        self.model.eval()
        self.val_meter.reset()
        for x, y in self.val_loader:
            x, y = x.to(self.device), y.to(self.device)
            logits = self.model(x)
            self.val_meter.update(logits, y, self.criterion(logits, y).item())
        return self.val_meter.compute()

    def _save(self, epoch, name):
        torch.save({"epoch": epoch, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "scheduler": self.scheduler.state_dict(), "best": self.best}, os.path.join(self.dir, name))
