"""What an evaluation's outputs are scored against: the targets that torch's loss functions are given, and the sum of what they answer."""

from __future__ import annotations

from . import evaluations, tensors

_INDEXED = {"cross_entropy", "nll_loss"}
_BY_VALUE = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
_CHANGE_THE_MEAN = ("weight", "pos_weight", "size_average", "reduce")


def add(line, name, given, target, settings, result):
    """Add one call of the loss function `name` to an evaluation's line. `settings` are its other arguments."""
    torch = tensors.torch_module()
    if not isinstance(target, torch.Tensor) or not isinstance(given, torch.Tensor):
        return
    with torch.no_grad():
        kept = tensors.as_single(target.detach())
        left_out = ignored(name, target, settings)
        if left_out is not None:
            kept = kept[kept != left_out]
        more = [
            int(kept.numel()),
            tensors.elements([kept], zeros=True),
            tensors.elements([kept]),
            _total(name, given, target, kept, settings, result),
        ]
    line["scores"][name] = evaluations.scored(line["scores"].get(name), more)


def ignored(name, target, settings):
    """The class index that the loss function `name` leaves out; None for one that leaves none out."""
    indexed = name in _INDEXED and not target.is_floating_point()
    return settings.get("ignore_index", tensors.IGNORED) if indexed else None


def _total(name, given, target, kept, settings, result):
    """The sum of the loss over everything that was scored, however it was divided into calls; None where the call does not tell."""
    if any(settings.get(each) is not None for each in _CHANGE_THE_MEAN):
        return None
    reduction = settings.get("reduction", "mean")
    if name in _INDEXED:
        many = kept.numel() if not target.is_floating_point() else given.numel() // given.shape[1 if given.dim() > 1 else 0]
    elif name in _BY_VALUE and given.shape == target.shape:
        many = given.numel()
    else:
        return None
    if reduction == "mean":
        return float(result) * many if many else 0.0
    return float(result.double().sum()) if reduction in ("sum", "none") else None
