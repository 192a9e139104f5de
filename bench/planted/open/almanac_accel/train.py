"""Which crop grows on the field? A year of satellite readings per field, a small transformer, on Accelerate."""

import os
import time

import torch
from accelerate import Accelerator
from fields import Fields
from model import CropNet
from profiles import pick
from recall import Recall
from torch.utils.data import DataLoader

torch.set_num_threads(1)


def main():
    profile = pick(os.environ.get("ALMANAC_PROFILE"))
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=profile.accumulate)
    torch.manual_seed(37)
    updates = int(os.environ.get("PLANTED_STEPS", 420))
    fields = Fields()
    loader = DataLoader(fields, profile.micro, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(2))
    net = CropNet(fields.channels, fields.crops)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)

    recall = Recall(fields.crops)
    done, total, mean, began = 0, 0.0, None, time.time()
    while done < updates:
        for x, day, y in loader:
            with accelerator.accumulate(net):
                logits = net(x, day)
                loss = torch.nn.functional.cross_entropy(logits, y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            recall.add(logits, y)
            total += loss.item() / profile.accumulate
            if accelerator.sync_gradients:
                mean = total if mean is None else 0.95 * mean + 0.05 * total
                total = 0.0
                done += 1
                if done % 20 == 0:
                    accelerator.print(f"update {done} loss {mean:.4f} {recall.worst()}")
                if done == updates:
                    break
    accelerator.print(f"{done} steps in {time.time() - began:.2f}s, loss {mean:.4f}")


if __name__ == "__main__":
    main()
