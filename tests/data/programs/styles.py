"""One program, many styles of training loop: the first argument chooses. Every part sleeps a known time, so phases can be told apart."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

STEPS = 24


class Rows(Dataset):
    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.full((8,), float(index % 5)), torch.tensor([float(index % 3)])


class Stream(IterableDataset):
    def __iter__(self):
        return (Rows()[index] for index in range(4 * STEPS))


class Slow(nn.Module):
    def __init__(self, seconds=0.002):
        super().__init__()
        self.net = nn.Linear(8, 1)
        self.seconds = seconds

    def forward(self, x):
        time.sleep(self.seconds)
        return self.net(x)


def loader(dataset=None, **options):
    return DataLoader(dataset or Rows(), batch_size=4, **options)


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


class Trainer:
    """A class-based trainer with callbacks."""

    def __init__(self):
        self.model, self.data = Slow(), loader(shuffle=True)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.done = 0

    def fit(self):
        for batch in self.data:
            self.training_step(batch)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.done += 1
            if self.done % 8 == 0:
                self.validate()

    def training_step(self, batch):
        loss_of(self.model, *batch).backward()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        for x, y in loader():
            loss_of(self.model, x, y)
            break
        torch.save(self.model.state_dict(), sys.argv[2])
        self.model.train()


def class_based():
    Trainer().fit()


def accumulation():
    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (x, y) in enumerate(loader()):
        (loss_of(model, x, y) / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


def two_optimizers():
    first, second = Slow(), Slow()
    one, two = torch.optim.SGD(first.parameters(), lr=0.01), torch.optim.SGD(second.parameters(), lr=0.01)
    for x, y in loader():
        one.zero_grad()
        loss_of(first, x, y).backward()
        one.step()
        two.zero_grad()
        (loss_of(second, x, y) + loss_of(first, x, y)).backward()
        two.step()


def lbfgs():
    model = Slow(0.0005)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for x, y in loader():

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            return loss

        optimizer.step(closure)


def lbfgs_full_batch():
    model, x, y = Slow(0.0005), torch.ones(16, 8), torch.ones(16, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)


def lbfgs_without_modules():
    weights, x, y = torch.ones(8, 1, requires_grad=True), torch.ones(16, 8), torch.ones(16, 1)
    optimizer = torch.optim.LBFGS([weights], lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        time.sleep(0.0005)
        loss = ((x @ weights - y) ** 2).mean()
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure=closure)


def manual_grad():
    model = Slow()
    for x, y in loader():
        gradients = torch.autograd.grad(loss_of(model, x, y), list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= 0.01 * gradient


def full_batch():
    model, x, y = Slow(), torch.ones(16, 8), torch.ones(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


def iterable():
    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader(Stream()):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()


def no_eval_call():
    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train, held_out = loader(), loader()
    for number, (x, y) in enumerate(train):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        if number % 8 == 7:
            with torch.no_grad():
                for x, y in held_out:
                    loss_of(model, x, y)


def teacher():
    model, guide = Slow(), Slow().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, _ in loader():
        with torch.no_grad():
            wanted = guide(x)
        optimizer.zero_grad()
        loss_of(model, x, wanted).backward()
        optimizer.step()


def tell_compiled():
    compiled = [entry.co_name for entry in torch._dynamo.utils.get_compilation_metrics()]
    print("compiled", compiled, "graph breaks", dict(torch._dynamo.utils.counters["graph_break"]))


def compiled():
    model = torch.compile(nn.Linear(8, 1), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader():
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    tell_compiled()


def compiled_step():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @torch.compile(backend="eager")
    def loss_of_batch(x, y):
        return ((model(x) - y) ** 2).mean()

    for x, y in loader():
        optimizer.zero_grad()
        loss_of_batch(x, y).backward()
        optimizer.step()
    tell_compiled()


def thread():
    import threading

    runner = threading.Thread(target=accumulation)
    runner.start()
    runner.join()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    print("end")
