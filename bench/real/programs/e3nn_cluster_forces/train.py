"""Energies and forces of argon-like clusters with an E(3)-equivariant network (e3nn) on PyG batches."""
import csv
import sys

import torch
from e3nn.nn.models.gate_points_2102 import Network
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
CUTOFF = 2.5


def lennard_jones(pos):
    d = torch.pdist(pos)
    return (4 * (d ** -12 - d ** -6)).sum()


def make_clusters(n, seed):
    gen = torch.Generator().manual_seed(seed)
    grid = torch.cartesian_prod(*[torch.arange(3.0)] * 3) * 1.12
    out = []
    for _ in range(n):
        k = int(torch.randint(8, 19, (1,), generator=gen))
        pos = grid[torch.randperm(27, generator=gen)[:k]] + 0.06 * torch.randn(k, 3, generator=gen)
        pos = pos.requires_grad_()
        energy = lennard_jones(pos)
        force = -torch.autograd.grad(energy, pos)[0]
        out.append(Data(pos=pos.detach(), x=torch.ones(k, 1), y=energy.detach().view(1), force=force))
    return out


def predict(model, batch, create_graph):
    batch.pos.requires_grad_(True)
    energy = model({"pos": batch.pos, "x": batch.x, "batch": batch.batch}).squeeze(-1)
    force = -torch.autograd.grad(energy.sum(), batch.pos, create_graph=create_graph)[0]
    return energy, force


def main():
    torch.manual_seed(0)
    train, valid = make_clusters(400, 1), make_clusters(80, 2)
    mean = torch.cat([d.y for d in train]).mean()
    std = torch.cat([d.y for d in train]).std()
    train_loader = DataLoader(train, batch_size=8, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=8)

    model = Network(
        irreps_in="1x0e", irreps_hidden="16x0e + 8x0o + 8x1e + 8x1o", irreps_out="1x0e",
        irreps_node_attr=None, irreps_edge_attr="0e + 1o + 2e", layers=2, max_radius=CUTOFF,
        number_of_basis=10, radial_layers=1, radial_neurons=64, num_neighbors=10.0,
        num_nodes=13.0, reduce_output=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=5, factor=0.5)
    best = float("inf")

    with open("log.csv", "w", newline="") as f:
        log = csv.writer(f)
        log.writerow(["epoch", "train_loss", "energy_mae", "force_mae"])
        for epoch in range(EPOCHS):
            model.train()
            running = 0.0
            for batch in train_loader:
                optimizer.zero_grad()
                energy, force = predict(model, batch, create_graph=True)
                loss = ((energy - (batch.y - mean) / std) ** 2).mean() \
                    + 10 * ((force - batch.force / std) ** 2).mean()
                loss.backward()
                optimizer.step()
                running += loss.item() * batch.num_graphs

            model.eval()
            e_err = f_err = 0.0
            for batch in valid_loader:
                energy, force = predict(model, batch, create_graph=False)
                e_err += (energy.detach() * std + mean - batch.y).abs().sum().item()
                f_err += (force * std - batch.force).abs().mean().item() * batch.num_graphs
            e_err, f_err = e_err / len(valid), f_err / len(valid)
            scheduler.step(f_err)
            log.writerow([epoch, running / len(train), e_err, f_err])
            f.flush()
            print(f"epoch {epoch} loss {running / len(train):.4f} energy mae {e_err:.3f} force mae {f_err:.3f}")
            if f_err < best:
                best = f_err
                torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
