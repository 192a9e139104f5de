import lightning as L
import torch
import torch.nn.functional as F

from gnn import EnergyNet


class LitEnergy(L.LightningModule):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.net = EnergyNet(options.net.width, options.net.layers, options.crystals.centres)
        self.last = float("nan")

    def training_step(self, batch, index):
        predicted = self.net(batch)
        loss = F.smooth_l1_loss(predicted, batch.energy)
        self.last = loss.item()
        if index % 10 == 0:
            with torch.no_grad():
                norms = {name: p.norm().item() for name, p in self.net.named_parameters()}
            print(f"energy loss {self.last:.4f}, largest weight norm {max(norms.values()):.2f}", flush=True)
        return loss

    def on_before_optimizer_step(self, optimizer):
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)

    def configure_optimizers(self):
        o = self.options.optim
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=o.lr, weight_decay=o.weight_decay)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.9)}
