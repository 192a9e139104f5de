"""Lines of figures from old ledgers: each figure is a small stroke pattern, with blots and drift."""

import torch

STROKES = torch.tensor(
    [
        [7, 5, 5, 5, 7],
        [2, 6, 2, 2, 7],
        [7, 1, 7, 4, 7],
        [7, 1, 3, 1, 7],
        [5, 5, 7, 1, 1],
        [7, 4, 7, 1, 7],
        [7, 4, 7, 5, 7],
        [7, 1, 2, 2, 2],
        [7, 5, 7, 5, 7],
        [7, 5, 7, 1, 7],
    ]
)
BITS = ((STROKES.unsqueeze(-1) >> torch.tensor([2, 1, 0])) & 1).float()  # 10 x 5 x 3


def lines(count: int, digits: int, g: torch.Generator):
    value = torch.randint(0, 10, (count, digits), generator=g)
    glyphs = torch.nn.functional.pad(BITS[value], (0, 1))  # count x digits x 5 x 4
    image = glyphs.permute(0, 2, 1, 3).reshape(count, 5, digits * 4)
    image = image.repeat_interleave(2, 1).repeat_interleave(2, 2)
    image = image + 0.5 * torch.randn(image.shape, generator=g)
    return image.unsqueeze(1), value
