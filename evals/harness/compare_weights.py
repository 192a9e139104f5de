"""`python compare_weights.py BEFORE AFTER TOLERANCE`: what differs between two final checkpoints, as a JSON list."""

import json
import sys

import torch


def main(before: str, after: str, tolerance: float) -> list[str]:
    left, right = (torch.load(path, map_location="cpu", weights_only=True) for path in (before, after))
    found = [f"{key} is missing in the final checkpoint" for key in left if key not in right]
    for key in ("step", "epoch", "samples"):
        if left[key] != right.get(key):
            found.append(f"{key} ends at {right.get(key)} instead of {left[key]}")
    for part in ("model", "average"):
        a, b = (_tensors(side.get(part)) for side in (left, right))
        if [x.shape for x in a] != [x.shape for x in b] or [x.dtype for x in a] != [x.dtype for x in b]:
            found.append(f"the {part} has another form")
            continue
        apart = sum(float((x.double() - y.double()).square().sum()) for x, y in zip(a, b, strict=True)) ** 0.5
        size = sum(float(x.double().square().sum()) for x in a) ** 0.5
        if not apart <= tolerance * max(size, 1e-12):
            found.append(f"final weights of the {part} differ by {apart / max(size, 1e-12):.2g}")
    return found


def _tensors(part: object) -> list[torch.Tensor]:
    if isinstance(part, torch.Tensor):
        return [part]
    if isinstance(part, dict):
        return [tensor for key in sorted(part) for tensor in _tensors(part[key])]
    if isinstance(part, list):
        return [tensor for each in part for tensor in _tensors(each)]
    return []


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
