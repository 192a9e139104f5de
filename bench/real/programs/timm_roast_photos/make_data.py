"""Draws photographs of coffee beans at five roast levels, as the camera over the belt would take them."""
import os

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

LEVELS = {
    "green": (126, 138, 92),
    "cinnamon": (150, 104, 58),
    "city": (104, 64, 36),
    "french": (66, 40, 26),
    "charcoal": (36, 28, 24),
}
SIZE = (640, 480)
COUNTS = {"train": 160, "val": 32}


def photo(rng, colour):
    belt = int(rng.integers(110, 205))
    noise = rng.normal(belt, 9, (SIZE[1], SIZE[0], 1)) + rng.normal(0, 4, (SIZE[1], SIZE[0], 3))
    img = Image.fromarray(noise.clip(0, 255).astype("uint8"))
    draw = ImageDraw.Draw(img)
    light = rng.uniform(0.75, 1.25)
    for _ in range(int(rng.integers(14, 30))):
        x, y = rng.integers(0, SIZE[0]), rng.integers(0, SIZE[1])
        w, h = rng.integers(45, 80), rng.integers(35, 60)
        tone = tuple(int(np.clip(c * light + rng.normal(0, 14), 0, 255)) for c in colour)
        draw.ellipse((x - w, y - h, x + w, y + h), fill=tone)
        seam = tuple(int(c * 0.6) for c in tone)
        draw.arc((x - w, y - h // 4, x + w, y + h // 3), 190, 350, fill=seam, width=5)
    img = img.filter(ImageFilter.GaussianBlur(rng.uniform(0.4, 1.4)))
    arr = np.asarray(img).astype("float32") + rng.normal(0, 5, (SIZE[1], SIZE[0], 3))
    return Image.fromarray(arr.clip(0, 255).astype("uint8"))


def main(root="photos"):
    rng = np.random.default_rng(11)
    for split, count in COUNTS.items():
        for name, colour in LEVELS.items():
            folder = os.path.join(root, split, name)
            os.makedirs(folder, exist_ok=True)
            for i in range(count):
                photo(rng, colour).save(os.path.join(folder, f"{i:04d}.jpg"), quality=92)


if __name__ == "__main__":
    main()
