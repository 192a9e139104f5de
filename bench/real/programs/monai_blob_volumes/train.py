"""3-D segmentation of blobs with MONAI: dictionary transforms, random patches, sliding windows for validation."""

import numpy as np
import torch
from monai.data import DataLoader, Dataset, create_test_image_3d, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import (
    Activations,
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    EnsureTyped,
    NormalizeIntensityd,
    Orientationd,
    RandCropByPosNegLabeld,
    RandGaussianNoised,
    RandRotate90d,
    ScaleIntensityd,
    Spacingd,
)
from monai.utils import set_determinism

EPOCHS = 6
PATCH = (32, 32, 32)


def make_cases(count, seed):
    rng = np.random.RandomState(seed)
    cases = []
    for _ in range(count):
        image, label = create_test_image_3d(80, 80, 80, num_objs=10, rad_max=12, num_seg_classes=1, random_state=rng)
        cases.append({"image": image.astype(np.float32), "label": label.astype(np.float32)})
    return cases


def build_transforms():
    common = [
        EnsureChannelFirstd(keys=["image", "label"], channel_dim="no_channel"),
        EnsureTyped(keys=["image", "label"]),
        Orientationd(keys=["image", "label"], axcodes="RAS"),
        Spacingd(keys=["image", "label"], pixdim=(1.2, 1.2, 1.2), mode=("bilinear", "nearest")),
        ScaleIntensityd(keys="image"),
        NormalizeIntensityd(keys="image", nonzero=True, channel_wise=True),
    ]
    train = Compose(
        common
        + [
            RandCropByPosNegLabeld(keys=["image", "label"], label_key="label", spatial_size=PATCH, pos=1, neg=1, num_samples=4),
            RandRotate90d(keys=["image", "label"], prob=0.5, spatial_axes=(0, 2)),
            RandGaussianNoised(keys="image", prob=0.3, std=0.05),
        ]
    )
    return train, Compose(common)


def main():
    set_determinism(seed=0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    train_tf, valid_tf = build_transforms()
    train_loader = DataLoader(Dataset(make_cases(40, 0), train_tf), batch_size=2, shuffle=True)
    valid_loader = DataLoader(Dataset(make_cases(6, 1), valid_tf), batch_size=1)

    model = UNet(spatial_dims=3, in_channels=1, out_channels=1, channels=(8, 16, 32), strides=(2, 2), num_res_units=1).to(device)
    loss_function = DiceLoss(sigmoid=True)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    metric = DiceMetric(include_background=True, reduction="mean")
    post = Compose([Activations(sigmoid=True), AsDiscrete(threshold=0.5)])

    best = -1.0
    for epoch in range(EPOCHS):
        model.train()
        epoch_loss = 0.0
        for step, batch in enumerate(train_loader, 1):
            inputs, labels = batch["image"].to(device), batch["label"].to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = loss_function(outputs, labels)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
            print(f"{epoch + 1}/{EPOCHS} step {step}/{len(train_loader)} loss {loss.item():.4f}")

        model.eval()
        with torch.no_grad():
            for batch in valid_loader:
                inputs, labels = batch["image"].to(device), batch["label"].to(device)
                outputs = sliding_window_inference(inputs, PATCH, 4, model)
                metric(y_pred=[post(o) for o in decollate_batch(outputs)], y=labels)
            score = metric.aggregate().item()
            metric.reset()
        if score > best:
            best = score
            torch.save(model.state_dict(), "best.pth")
        print(f"epoch {epoch + 1} mean loss {epoch_loss / step:.4f} dice {score:.4f} best {best:.4f}")


if __name__ == "__main__":
    main()
