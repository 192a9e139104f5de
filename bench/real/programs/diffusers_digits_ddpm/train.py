"""A tiny DDPM that draws digits, trained on scikit-learn's digit images."""

import os

import torch
import torch.nn.functional as F
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

EPOCHS = 4
BATCH = 32
OUT = "samples"


class DigitImages(Dataset):
    def __init__(self):
        images = load_digits().images
        self.images = torch.tensor(images, dtype=torch.float32)[:, None] / 8.0 - 1.0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = F.interpolate(self.images[index][None], size=16, mode="bilinear")[0]
        return {"images": image}


def draw_samples(model, scheduler, epoch):
    pipeline = DDPMPipeline(unet=model, scheduler=scheduler)
    pipeline.set_progress_bar_config(disable=True)
    images = pipeline(batch_size=8, generator=torch.Generator().manual_seed(0), num_inference_steps=250).images
    os.makedirs(OUT, exist_ok=True)
    for i, image in enumerate(images):
        image.save(f"{OUT}/{epoch:02d}_{i}.png")


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = DataLoader(DigitImages(), batch_size=BATCH, shuffle=True)
    model = UNet2DModel(
        sample_size=16,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 32, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
    ).to(device)
    scheduler = DDPMScheduler(num_train_timesteps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    lr_scheduler = get_cosine_schedule_with_warmup(optimizer, 50, len(loader) * EPOCHS)
    ema = EMAModel(model.parameters(), decay=0.995)

    for epoch in range(EPOCHS):
        model.train()
        for step, batch in enumerate(loader):
            clean = batch["images"].to(device)
            noise = torch.randn_like(clean)
            timesteps = torch.randint(0, scheduler.config.num_train_timesteps, (len(clean),), device=device)
            noisy = scheduler.add_noise(clean, noise, timesteps)

            predicted = model(noisy, timesteps, return_dict=False)[0]
            loss = F.mse_loss(predicted, noise)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            ema.step(model.parameters())
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} lr {lr_scheduler.get_last_lr()[0]:.2e}")

        model.eval()
        ema.store(model.parameters())
        ema.copy_to(model.parameters())
        draw_samples(model, scheduler, epoch)
        model.save_pretrained("unet")
        ema.restore(model.parameters())


if __name__ == "__main__":
    main()
