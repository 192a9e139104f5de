"""The contrast between all pairs of a batch, and its gradients."""

import os

import torch
import torch.nn.functional as F


def contrast(left, right, warmth):
    score = left @ right.T / warmth
    own = torch.arange(len(score))
    return (F.cross_entropy(score, own) + F.cross_entropy(score.T, own)) / 2


def lead(ears, sounds, warmth):
    """Leaves the gradients in the ears and returns the loss."""
    if os.environ.get("PLANTED_FIX") == "1":
        loss = contrast(*(ear(sound) for ear, sound in zip(ears, sounds)), warmth)
        loss.backward()
        return loss.detach()
    else:
        with torch.no_grad():
            codes = [ear(sound) for ear, sound in zip(ears, sounds)]
        codes = [code.requires_grad_() for code in codes]
        loss = contrast(*codes, warmth)
        pulls = torch.autograd.grad(loss, codes)
        for ear, sound, pull in zip(ears, sounds, pulls):
            ear(sound).backward(pull)
        return loss.detach()
