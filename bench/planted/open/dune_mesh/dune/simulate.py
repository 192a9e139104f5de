import torch


def sand_flux(mesh, batch, generator):
    """Random smooth sand heights and the same heights after one wind step."""
    centre = torch.rand(batch, 1, 2, generator=generator)
    spread = 0.05 + 0.2 * torch.rand(batch, 1, generator=generator)
    here = ((mesh.xyz[:, :2] - centre) ** 2).sum(-1)
    before = torch.exp(-here / spread**2)
    shifted = ((mesh.xyz[:, :2] - centre - 0.03) ** 2).sum(-1)
    after = 0.97 * torch.exp(-shifted / (spread * 1.1) ** 2)
    return before, after
