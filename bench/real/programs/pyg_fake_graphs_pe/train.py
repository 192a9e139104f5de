"""Graph classification with a GIN whose inputs carry random-walk positional encodings."""

import torch
import torch.nn.functional as F
import torch_geometric.transforms as T
from torch import nn
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, global_add_pool

WALK = 20
EPOCHS = 16


class GraphNet(nn.Module):
    def __init__(self, in_channels, edge_dim, hidden, classes, layers=3):
        super().__init__()
        self.embed = nn.Linear(in_channels + WALK, hidden)
        self.convs = nn.ModuleList()
        self.norms = nn.ModuleList()
        for _ in range(layers):
            mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
            self.convs.append(GINEConv(mlp, edge_dim=edge_dim))
            self.norms.append(nn.BatchNorm1d(hidden))
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.3), nn.Linear(hidden, classes))

    def forward(self, data):
        x = self.embed(torch.cat([data.x, data.pe], dim=-1))
        for conv, norm in zip(self.convs, self.norms):
            x = x + F.relu(norm(conv(x, data.edge_index, data.edge_attr)))
        return self.head(global_add_pool(x, data.batch))


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    total = 0.0
    for data in loader:
        data = data.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), data.y)
        loss.backward()
        optimizer.step()
        total += float(loss) * data.num_graphs
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    correct = 0
    for data in loader:
        data = data.to(device)
        pred = model(data).argmax(dim=-1)
        correct += int((pred == data.y).sum())
    return correct / len(loader.dataset)


def main():
    seed_everything(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    transform = T.Compose([T.NormalizeFeatures(), T.AddRandomWalkPE(walk_length=WALK, attr_name="pe")])
    dataset = FakeDataset(num_graphs=1200, avg_num_nodes=50, avg_degree=6, num_channels=24, edge_dim=4, num_classes=6, transform=transform)
    dataset = dataset.shuffle()
    train_set, val_set, test_set = dataset[:800], dataset[800:1000], dataset[1000:]
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=32)
    test_loader = DataLoader(test_set, batch_size=32)

    model = GraphNet(24, 4, 32, dataset.num_classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best = 0.0
    for epoch in range(1, EPOCHS + 1):
        loss = train_one_epoch(model, train_loader, optimizer, device)
        train_acc = accuracy(model, train_loader, device)
        val_acc = accuracy(model, val_loader, device)
        if val_acc > best:
            best = val_acc
            torch.save(model.state_dict(), "best.pt")
        print(f"epoch {epoch:02d} loss {loss:.4f} train {train_acc:.3f} val {val_acc:.3f}")
    model.load_state_dict(torch.load("best.pt"))
    print(f"test accuracy {accuracy(model, test_loader, device):.3f}")


if __name__ == "__main__":
    main()
