"""Embeddings of handwritten digits, learned with triplets and a semi-hard miner."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, samplers, testers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 12


class Embedder(nn.Module):
    def __init__(self, size=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(64 * 16, 128), nn.ReLU(), nn.Linear(128, size))

    def forward(self, x):
        return self.fc(self.conv(x))


def load_sets():
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(y)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    return TensorDataset(x_train, y_train), TensorDataset(x_test, y_test), y_train


def train(model, loss_func, mining_func, device, loader, optimizer, epoch):
    model.train()
    for i, (data, labels) in enumerate(loader):
        data, labels = data.to(device), labels.to(device)
        optimizer.zero_grad()
        embeddings = model(data)
        triplets = mining_func(embeddings, labels)
        loss = loss_func(embeddings, labels, triplets)
        loss.backward()
        optimizer.step()
        if i % 20 == 0:
            print(f"epoch {epoch} batch {i} loss {loss.item():.4f} mined {mining_func.num_triplets}")


def embed_all(dataset, model):
    tester = testers.BaseTester(dataloader_num_workers=0)
    return tester.get_all_embeddings(dataset, model)


def test(train_set, test_set, model, calculator):
    train_embeddings, train_labels = embed_all(train_set, model)
    test_embeddings, test_labels = embed_all(test_set, model)
    scores = calculator.get_accuracy(test_embeddings, test_labels.squeeze(1), train_embeddings, train_labels.squeeze(1), False)
    print({k: round(v, 4) for k, v in scores.items()})
    return scores["precision_at_1"]


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set, test_set, y_train = load_sets()
    sampler = samplers.MPerClassSampler(y_train, m=20, length_before_new_iter=6000)
    loader = DataLoader(train_set, batch_size=200, sampler=sampler)

    model = Embedder().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    distance = distances.CosineSimilarity()
    reducer = reducers.ThresholdReducer(low=0)
    loss_func = losses.TripletMarginLoss(margin=0.2, distance=distance, reducer=reducer)
    mining_func = miners.TripletMarginMiner(margin=0.2, distance=distance, type_of_triplets="semihard")
    calculator = AccuracyCalculator(include=("precision_at_1", "mean_average_precision_at_r"), k="max_bin_count")

    best = 0.0
    for epoch in range(1, EPOCHS + 1):
        train(model, loss_func, mining_func, device, loader, optimizer, epoch)
        score = test(train_set, test_set, model, calculator)
        if score > best:
            best = score
            torch.save(model.state_dict(), "embedder.pt")
    print(f"best precision at one: {best:.4f}")


if __name__ == "__main__":
    main()
