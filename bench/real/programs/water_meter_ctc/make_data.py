"""Renders cut-outs of serial plates of water meters: images/*.png and a jsonl per split."""
import json
import os

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LETTERS = "ABCDEFGHKLMNPRSTUVXYZ"
DIGITS = "0123456789"


def serial(rng):
    head = "".join(rng.choice(list(LETTERS), int(rng.integers(2, 4))))
    body = "".join(rng.choice(list(DIGITS), int(rng.integers(4, 7))))
    return f"{head}-{body}" if rng.random() < 0.4 else head + body


def render(rng, text, fonts):
    font = fonts[int(rng.integers(len(fonts)))]
    width = int(font.getlength(text)) + int(rng.integers(14, 40))
    base, ink = int(rng.integers(120, 225)), int(rng.integers(10, 80))
    image = Image.new("L", (width, 48), base)
    draw = ImageDraw.Draw(image)
    draw.text((int(rng.integers(5, 14)), int(rng.integers(2, 14))), text, font=font, fill=ink)
    image = image.rotate(float(rng.normal(0, 1.5)), resample=Image.BILINEAR, fillcolor=base)
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.2, 1.2))))
    pixels = np.asarray(image).astype("float32") + rng.normal(0, 9, (48, width))
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def main(root="plates"):
    rng = np.random.default_rng(3)
    fonts = [ImageFont.load_default(size) for size in (22, 24, 26)]
    os.makedirs(os.path.join(root, "images"), exist_ok=True)
    for split, count in (("train", 1600), ("val", 240)):
        with open(os.path.join(root, f"{split}.jsonl"), "w") as out:
            for i in range(count):
                text = serial(rng)
                name = f"images/{split}_{i:05d}.png"
                render(rng, text, fonts).save(os.path.join(root, name))
                out.write(json.dumps({"file": name, "text": text}) + "\n")


if __name__ == "__main__":
    main()
