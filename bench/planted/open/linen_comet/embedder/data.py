import torch
import torch.nn.functional as F


class ProductShapes:
    """Gray product thumbnails: one smooth random pattern per class, shifted, scaled and noisy."""

    def __init__(self, num_classes, per_class, image_size, seed):
        g = torch.Generator().manual_seed(seed)
        coarse = torch.randn(num_classes, 1, 6, 6, generator=g)
        base = F.interpolate(coarse, size=image_size + 8, mode="bicubic", align_corners=False)
        images, labels = [], []
        for c in range(num_classes):
            for _ in range(per_class):
                top, left = torch.randint(0, 9, (2,), generator=g).tolist()
                view = base[c, :, top : top + image_size, left : left + image_size]
                gain = 0.7 + 0.6 * torch.rand((), generator=g)
                images.append(gain * view + 0.8 * torch.randn(view.shape, generator=g))
                labels.append(c)
        self.images = torch.stack(images)
        self.labels = torch.tensor(labels)


class ClassBalancedSampler:
    """Yields index batches with P classes and K samples of each."""

    def __init__(self, labels, classes_per_batch, samples_per_class, seed):
        self.by_class = [torch.where(labels == c)[0] for c in labels.unique()]
        self.p = classes_per_batch
        self.k = samples_per_class
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            chosen = torch.randperm(len(self.by_class), generator=self.generator)[: self.p]
            picks = []
            for c in chosen.tolist():
                members = self.by_class[c]
                picks.append(members[torch.randperm(len(members), generator=self.generator)[: self.k]])
            yield torch.cat(picks)
