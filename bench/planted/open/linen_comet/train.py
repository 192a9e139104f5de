import os

import torch

from embedder import ClassBalancedSampler, Config, EmbeddingNet, ProductShapes, Trainer


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    data = ProductShapes(cfg.num_classes, cfg.per_class, cfg.image_size, cfg.seed)
    sampler = ClassBalancedSampler(data.labels, cfg.classes_per_batch, cfg.samples_per_class, cfg.seed)
    model = EmbeddingNet(cfg.width, cfg.embed_dim)
    trainer = Trainer(cfg, model, data, sampler)

    loss = trainer.fit(int(os.environ.get("PLANTED_STEPS", cfg.steps)))

    print(f"recall@1 {trainer.recall_at_1():.3f}")
    print(f"{trainer.step} steps in {trainer.elapsed:.2f} s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
