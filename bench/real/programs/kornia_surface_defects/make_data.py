"""Photographs of steel strips with six kinds of surface defect, made up; writes data/*.jpg and data/labels.csv."""
import csv
import os

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

CLASSES = ["crazing", "inclusion", "patches", "pitted", "rolled_in", "scratches"]


def draw(kind, rng, size=400):
    base = rng.normal(130, 12, (size, size)) + np.linspace(-25, 25, size)[None, :] * rng.uniform(-1, 1)
    img = Image.fromarray(np.clip(base, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(1))
    d = ImageDraw.Draw(img)
    shade = int(rng.integers(20, 90))
    for _ in range(int(rng.integers(4, 12))):
        x, y = rng.integers(0, size, 2).tolist()
        if kind == "scratches":
            d.line([x, y, x + int(rng.integers(-20, 20)), y + int(rng.integers(80, 200))], fill=220, width=2)
        elif kind == "inclusion":
            d.ellipse([x, y, x + 8, y + int(rng.integers(30, 70))], fill=shade)
        elif kind == "patches":
            d.ellipse([x, y, x + int(rng.integers(40, 90)), y + int(rng.integers(30, 80))], fill=shade)
        elif kind == "pitted":
            for px, py in rng.integers(-30, 30, (12, 2)).tolist():
                d.ellipse([x + px, y + py, x + px + 3, y + py + 3], fill=shade)
        elif kind == "rolled_in":
            d.rectangle([x, y, x + 14, y + 10], fill=shade)
        else:
            pts = [(x + int(a), y + int(b)) for a, b in np.cumsum(rng.integers(-12, 13, (10, 2)), 0)]
            d.line(pts, fill=shade, width=1)
    return img.convert("RGB")


def main(n=1200):
    rng = np.random.default_rng(0)
    os.makedirs("data", exist_ok=True)
    with open("data/labels.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["file", "label", "split"])
        for i in range(n):
            k = i % len(CLASSES)
            name = f"{CLASSES[k]}_{i:04d}.jpg"
            draw(CLASSES[k], rng).save(os.path.join("data", name), quality=90)
            w.writerow([name, k, "val" if i % 5 == 4 else "train"])


if __name__ == "__main__":
    main()
