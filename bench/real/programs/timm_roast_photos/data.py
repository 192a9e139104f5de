import os

from PIL import Image
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, create_transform
from torch.utils.data import DataLoader, Dataset


class RoastPhotos(Dataset):
    """root/<roast level>/*.jpg"""

    def __init__(self, root, transform):
        self.classes = sorted(os.listdir(root))
        self.samples = []
        for label, name in enumerate(self.classes):
            folder = os.path.join(root, name)
            for file in sorted(os.listdir(folder)):
                self.samples.append((os.path.join(folder, file), label))
        self.transform = transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        image = Image.open(path).convert("RGB")
        return self.transform(image), label


def make_loaders(root, image_size, batch_size, workers):
    train_tf = create_transform(
        image_size,
        is_training=True,
        auto_augment="rand-m7-n2-mstd0.5-inc1",
        color_jitter=0.3,
        re_prob=0.2,
        mean=IMAGENET_DEFAULT_MEAN,
        std=IMAGENET_DEFAULT_STD,
    )
    val_tf = create_transform(image_size, is_training=False, mean=IMAGENET_DEFAULT_MEAN, std=IMAGENET_DEFAULT_STD)
    train_set = RoastPhotos(os.path.join(root, "train"), train_tf)
    val_set = RoastPhotos(os.path.join(root, "val"), val_tf)
    train = DataLoader(train_set, batch_size, shuffle=True, drop_last=True, num_workers=workers)
    val = DataLoader(val_set, batch_size, num_workers=workers)
    return train, val
