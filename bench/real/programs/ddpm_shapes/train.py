"""Unconditional DDPM on small pictures of shapes, after the diffusers training tutorial."""
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from diffusers.utils import make_image_grid
from torch.utils.data import DataLoader

from shapes import ShapesDataset


@dataclass
class TrainingConfig:
    image_size: int = 16
    train_size: int = 1600
    train_batch_size: int = 16
    eval_batch_size: int = 8
    num_epochs: int = 3
    learning_rate: float = 1e-3
    lr_warmup_steps: int = 50
    inference_steps: int = 50
    save_image_epochs: int = 1
    save_model_epochs: int = 1
    use_ema: bool = True
    output_dir: str = "ddpm-shapes"
    seed: int = 0


def evaluate(config, epoch, pipeline):
    images = pipeline(
        batch_size=config.eval_batch_size,
        generator=torch.Generator().manual_seed(config.seed),
        num_inference_steps=config.inference_steps,
    ).images
    grid = make_image_grid([im.resize((64, 64)) for im in images], rows=2, cols=4)
    test_dir = os.path.join(config.output_dir, "samples")
    os.makedirs(test_dir, exist_ok=True)
    grid.save(f"{test_dir}/{epoch:04d}.png")


def train_loop(config):
    set_seed(config.seed)
    accelerator = Accelerator(cpu=True)
    dataset = ShapesDataset(config.train_size, config.image_size)
    train_dataloader = DataLoader(dataset, batch_size=config.train_batch_size, shuffle=True)

    model = UNet2DModel(
        sample_size=config.image_size,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(32, 64, 64),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
    )
    noise_scheduler = DDPMScheduler(num_train_timesteps=1000)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    lr_scheduler = get_cosine_schedule_with_warmup(
        optimizer=optimizer,
        num_warmup_steps=config.lr_warmup_steps,
        num_training_steps=len(train_dataloader) * config.num_epochs,
    )
    model, optimizer, train_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, lr_scheduler
    )
    ema = EMAModel(model.parameters(), decay=0.995) if config.use_ema else None

    global_step = 0
    for epoch in range(config.num_epochs):
        losses = []
        for clean_images in train_dataloader:
            noise = torch.randn(clean_images.shape)
            bs = clean_images.shape[0]
            timesteps = torch.randint(0, noise_scheduler.config.num_train_timesteps, (bs,), dtype=torch.int64)
            noisy_images = noise_scheduler.add_noise(clean_images, noise, timesteps)

            with accelerator.accumulate(model):
                noise_pred = model(noisy_images, timesteps, return_dict=False)[0]
                loss = F.mse_loss(noise_pred, noise)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            if ema is not None:
                ema.step(model.parameters())

            losses.append(loss.detach().item())
            global_step += 1
            if global_step % 20 == 0:
                print(f"epoch {epoch} step {global_step} loss {np.mean(losses[-20:]):.4f} "
                      f"lr {lr_scheduler.get_last_lr()[0]:.2e}", flush=True)

        if accelerator.is_main_process:
            if ema is not None:
                ema.store(model.parameters())
                ema.copy_to(model.parameters())
            pipeline = DDPMPipeline(unet=accelerator.unwrap_model(model), scheduler=noise_scheduler)
            pipeline.set_progress_bar_config(disable=True)
            if (epoch + 1) % config.save_image_epochs == 0 or epoch == config.num_epochs - 1:
                evaluate(config, epoch, pipeline)
            if (epoch + 1) % config.save_model_epochs == 0 or epoch == config.num_epochs - 1:
                pipeline.save_pretrained(config.output_dir)
            if ema is not None:
                ema.restore(model.parameters())


if __name__ == "__main__":
    train_loop(TrainingConfig())
