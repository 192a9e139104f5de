"""Data parallelism by hand: the same start everywhere, gradients averaged before each update."""

import os

import torch
import torch.distributed as dist

FIX = os.environ.get("PLANTED_FIX") == "1"


def start() -> tuple[int, int]:
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def same_weights(model: torch.nn.Module) -> None:
    with torch.no_grad():
        flat = torch.nn.utils.parameters_to_vector(model.parameters())
        dist.broadcast(flat, src=0)
        torch.nn.utils.vector_to_parameters(flat, model.parameters())


def average_gradients(model: torch.nn.Module) -> None:
    world = dist.get_world_size()
    if FIX:
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat)
        flat /= world
        torch._foreach_copy_(grads, [piece.view_as(g) for piece, g in zip(flat.split([g.numel() for g in grads]), grads, strict=True)])
    else:
        for p in model.parameters():
            if p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= world


def mean_of(value: float) -> float:
    box = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(box)
    return box.item() / dist.get_world_size()


def stop() -> None:
    dist.barrier()
    dist.destroy_process_group()
