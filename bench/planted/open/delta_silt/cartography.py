"""Figures about maps: how well they overlap, and into how many islands they fall apart."""

import torch


def overlap(predicted: torch.Tensor, truth: torch.Tensor, classes: int) -> torch.Tensor:
    """Intersection over union for each class."""
    table = torch.bincount((truth * classes + predicted).flatten(), minlength=classes * classes).view(classes, classes)
    both = table.diagonal()
    return both / (table.sum(0) + table.sum(1) - both).clamp(min=1)


def islands(chart: list[list[int]]) -> int:
    """The number of connected areas of one class in a map."""
    height, width = len(chart), len(chart[0])
    seen = [[False] * width for _ in range(height)]
    count = 0
    for top in range(height):
        for left in range(width):
            if seen[top][left]:
                continue
            count += 1
            kind, shore = chart[top][left], [(top, left)]
            seen[top][left] = True
            while shore:
                row, column = shore.pop()
                for y, x in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                    if 0 <= y < height and 0 <= x < width and not seen[y][x] and chart[y][x] == kind:
                        seen[y][x] = True
                        shore.append((y, x))
    return count
