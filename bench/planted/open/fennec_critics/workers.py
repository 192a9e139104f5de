import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def setup_workers():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def avg_grads(module):
    grads = [p.grad for p in module.parameters() if p.grad is not None]
    flat = parameters_to_vector(grads)
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    vector_to_parameters(flat, grads)


def sync_params(module):
    """All workers take the parameters of worker 0."""
    for p in module.parameters():
        dist.broadcast(p.data, src=0)


def avg_scalar(value):
    t = torch.tensor([float(value)])
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item()
