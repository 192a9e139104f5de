"""Loops that owners write themselves, with timers placed by hand. Arguments: style, file for the marks."""

import sys

import torch
from timed import batches, step, timed, write
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset

STEPS = 200
WIDTH = 256
HIDDEN = 1024  # steps of some 15 ms on one core: a point is then about 150 µs


class Rows(Dataset):
    def __init__(self, count=64 * STEPS, width=WIDTH):
        self.count, self.width = count, width

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((self.width,), float(index % 7)).sin(), index % 10


class Stream(IterableDataset):
    def __iter__(self):
        return (Rows()[index] for index in range(64 * STEPS))


def network(width=WIDTH, out=10):
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Dropout(0.1), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, out))


def evaluate(model, loader):
    with timed("Eval"):
        model.eval()
        with torch.no_grad():
            for number, (x, _) in enumerate(loader):
                model(x)
                if number == 3:
                    break
        model.train()


def update(optimizer, loss):
    with timed("Bwd"):
        loss.backward()
    with timed("Opt"):
        optimizer.step()
    optimizer.zero_grad()


def loop_over(loader, model, epochs=1, criterion=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = criterion or nn.CrossEntropyLoss()
    for _ in range(epochs):
        for x, y in batches(loader):
            with timed("Fwd"):
                loss = criterion(model(x), y)
            update(optimizer, loss)
            step()


def plain():
    loop_over(DataLoader(Rows(), batch_size=64, shuffle=True), network())


def workers():
    loop_over(DataLoader(Rows(64 * STEPS // 2), batch_size=64, num_workers=2), network(), epochs=2)


def iterable():
    loop_over(DataLoader(Stream(), batch_size=64), network())


def functional_loss():
    """The loss is a function, over many classes."""
    loop_over(DataLoader(Rows(32 * STEPS), batch_size=32), network(out=8000), criterion=F.cross_entropy)


def written_loss():
    """The loss is an expression: all pairs of a batch."""

    def contrast(z, y):
        z = z / z.norm(dim=1, keepdim=True)
        return ((z @ z.T - (y[:, None] == y[None, :]).float()) ** 2).mean()

    loop_over(DataLoader(Rows(256 * STEPS // 2), batch_size=256), network(out=512), criterion=contrast)


def loss_and_metrics():
    """A loss written as an expression, with the owner's own Python in the midst of it."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    wanted = torch.eye(10)
    for x, y in batches(DataLoader(Rows(256 * STEPS // 2), batch_size=256)):
        with timed("Fwd"):
            out = model(x)
            chance = (out - out.logsumexp(1, keepdim=True)).exp()
        rows = out.detach().tolist()
        hits = sum(max(range(10), key=row.__getitem__) == int(label) for row, label in zip(rows * 4, y.tolist() * 4, strict=True))
        with timed("Fwd"):
            loss = ((chance[:, None, :] - wanted[y][None, :, :]) ** 2).mean()
        update(optimizer, loss)
        step()
    print(hits)


def actor_and_critic():
    """A method around two networks, whose own forward is never called."""

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic = network(out=512), network(out=1)

        def judge(self, x, chosen):
            choices = torch.distributions.Categorical(logits=self.actor(x))
            return choices.log_prob(chosen), choices.entropy(), self.critic(x)

    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-4)
    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"):
            likely, entropy, value = agent.judge(x, y)
            loss = -(likely * 0.5).mean() - 0.01 * entropy.mean() + (value.view(-1) - 1).square().mean()
        update(optimizer, loss)
        step()


def metrics_between():
    """The owner's own Python between forward and backward, by no means part of the forward."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"):
            out = model(x)
        rows = out.detach().tolist()
        hits = sum(max(range(10), key=row.__getitem__) == int(label) for row, label in zip(rows * 12, y.tolist() * 12, strict=True))
        with timed("Fwd"):
            loss = F.cross_entropy(out, y)
        update(optimizer, loss)
        step()
    print(hits)


def get_batch_loop(make, eval_every=20):
    model = nn.Sequential(nn.Embedding(500, 64), nn.Flatten(), nn.Linear(64 * 32, 512), nn.ReLU(), nn.Linear(512, 500))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for number in range(STEPS):
        with timed("Data"):
            x, y = make()
        with timed("Fwd"):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        with timed("Bwd"):
            loss.backward()
        with timed("Opt"):
            optimizer.step()
        if number % eval_every == eval_every - 1:
            with timed("Eval"):
                estimate(model, make)
        step()


@torch.no_grad()
def estimate(model, make):
    model.eval()
    for _ in range(4):
        x, y = make()
        F.cross_entropy(model(x), y)
    model.train()


tokens = torch.randint(0, 500, (100_000,))


def random_rows():
    starts = torch.randint(0, len(tokens) - 33, (64,))
    rows = torch.stack([tokens[s : s + 33] for s in starts.tolist()])
    return rows[:, :-1], rows[:, -1]


def endless_rows():
    while True:
        yield random_rows()


def get_batch():
    get_batch_loop(lambda: random_rows())


def generator():
    stream = endless_rows()
    get_batch_loop(lambda: next(stream))


def accumulation():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for number, (x, y) in enumerate(batches(DataLoader(Rows(), batch_size=32))):
        with timed("Fwd"):
            loss = criterion(model(x), y) / 4
        with timed("Bwd"):
            loss.backward()
        if number % 4 == 3:
            with timed("Opt"):
                optimizer.step()
            optimizer.zero_grad()
            step()


def adversarial(ratio):
    maker, critic = network(64, WIDTH), network(WIDTH, 1)
    make, judge = torch.optim.Adam(maker.parameters(), lr=1e-4), torch.optim.Adam(critic.parameters(), lr=1e-4)
    criterion = nn.BCEWithLogitsLoss()
    one, zero = torch.ones(64, 1), torch.zeros(64, 1)
    for number, (x, _) in enumerate(batches(DataLoader(Rows(64 * STEPS * ratio // 2), batch_size=64))):
        noise = torch.randn(64, 64)
        with timed("Fwd"):
            fake = maker(noise)
            loss = criterion(critic(x), one) + criterion(critic(fake.detach()), zero)
        update(judge, loss)
        if number % ratio == ratio - 1:
            with timed("Fwd"):
                loss = criterion(critic(fake), one)
            update(make, loss)
            step()


def gan():
    adversarial(1)


def gan_five_to_one():
    adversarial(5)


def lbfgs():
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    criterion = nn.CrossEntropyLoss()
    for x, y in batches(DataLoader(Rows(), batch_size=128)):

        def closure(x=x, y=y):
            optimizer.zero_grad()
            with timed("Fwd"):
                loss = criterion(model(x), y)
            with timed("Bwd"):
                loss.backward()
            return loss

        with timed("Opt"):
            optimizer.step(closure)
        step()


def manual():
    """No optimizer object: the update stands in the loop."""
    model = network()
    weights = list(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"):
            loss = criterion(model(x), y)
        with timed("Bwd"):
            gradients = torch.autograd.grad(loss, weights)
        with timed("Opt"), torch.no_grad():
            for parameter, gradient in zip(weights, gradients, strict=True):
                parameter -= 0.01 * gradient
        step()


class Descent:
    """An optimizer that owes nothing to torch's."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.averages = [torch.zeros_like(parameter) for parameter in self.parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        for parameter, average in zip(self.parameters, self.averages, strict=True):
            average.mul_(0.9).add_(parameter.grad)
            parameter.data.add_(average, alpha=-0.01)


def own_optimizer():
    model = network()
    optimizer = Descent(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"):
            loss = criterion(model(x), y)
        update(optimizer, loss)
        step()


def functional():
    """New parameters take the place of the old ones in each step."""
    from torch.func import functional_call, grad

    model = network()
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss_of(parameters, x, y):
        with timed("Fwd"):
            return F.cross_entropy(functional_call(model, parameters, (x,)), y)

    def descend(parameters, gradients):
        return {name: parameter - 0.01 * gradients[name] for name, parameter in parameters.items()}

    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Bwd"):
            gradients = grad(loss_of)(parameters, x, y)
        with timed("Opt"):
            parameters = descend(parameters, gradients)
        step()


def full_batch():
    """A graph network on one whole graph: trains and evaluates in every step."""
    adjacency, features, labels = torch.rand(600, 600) / 600, torch.randn(600, 256), torch.randint(0, 7, (600,))

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.drop = nn.Linear(256, 128), nn.Linear(128, 7), nn.Dropout(0.5)

        def forward(self, x):
            return self.second(self.drop(F.relu(self.first(adjacency @ x))))

    model = Graph()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        model.train()
        optimizer.zero_grad()
        with timed("Fwd"):
            loss = F.cross_entropy(model(features)[:400], labels[:400])
        with timed("Bwd"):
            loss.backward()
        with timed("Opt"):
            optimizer.step()
        with timed("Eval"):
            test(model, features, labels)
        step()


@torch.no_grad()
def test(model, features, labels):
    model.eval()
    return (model(features).argmax(1)[400:] == labels[400:]).float().mean().item()


def scaler():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    grad_scaler, criterion = torch.amp.GradScaler("cpu"), nn.CrossEntropyLoss()
    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"), torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(x), y)
        with timed("Bwd"):
            grad_scaler.scale(loss).backward()
        with timed("Opt"):
            grad_scaler.step(optimizer)
            grad_scaler.update()
        optimizer.zero_grad()
        step()


def compiled_module():
    loop_over(DataLoader(Rows(), batch_size=64), torch.compile(network(), backend="aot_eager"))


def compiled_function():
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @torch.compile(backend="aot_eager")
    def loss_of(x, y):
        return F.cross_entropy(model(x), y)

    for x, y in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"):
            loss = loss_of(x, y)
        update(optimizer, loss)
        step()


def teacher():
    model, guide = network(), network().eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.KLDivLoss(reduction="batchmean")
    for x, _ in batches(DataLoader(Rows(), batch_size=64)):
        with timed("Fwd"):
            with torch.no_grad():
                wanted = guide(x).softmax(1)
            loss = criterion(model(x).log_softmax(1), wanted)
        update(optimizer, loss)
        step()


def like_timm():
    """Averaged weights, schedule, log lines, validation and a checkpoint at the end of each epoch."""
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)
    )
    model(torch.zeros(1, 3, 32, 32))
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    images = [(torch.randn(3, 32, 32), index % 10) for index in range(32 * STEPS // 4)]
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(4):
        model.train()
        for number, (x, y) in enumerate(batches(DataLoader(images, batch_size=32, shuffle=True))):
            if number:
                step()
            with timed("Fwd"):
                loss = criterion(model(x), y)
            optimizer.zero_grad()
            with timed("Bwd"):
                loss.backward()
            with timed("Opt"):
                optimizer.step()
            average.update_parameters(model)
            schedule.step()
            if number % 5 == 0:
                with timed("Log"):
                    print(f"loss {loss:.3f}", flush=True)
        evaluate(model, DataLoader(images, batch_size=32))
        with timed("Ckpt"):
            torch.save(model.state_dict(), sys.argv[2] + ".pt")
        step()


def rollouts():
    """Acting without gradients makes the data of four updates."""
    actor = network(WIDTH, 4)
    optimizer = torch.optim.Adam(actor.parameters(), lr=1e-4)
    for number in range(STEPS):
        if number % 4 == 0:
            with timed("Data"):
                seen, state = [], torch.zeros(16, WIDTH)
                for _ in range(16):
                    with torch.no_grad():
                        action = actor(state).argmax(1)
                    seen.append(state)
                    state = (state + action[:, None]).sin()
                states = torch.cat(seen)
        rows = states[torch.randperm(256)[:128]]
        with timed("Fwd"):
            loss = actor(rows).logsumexp(1).mean()
        optimizer.zero_grad()
        with timed("Bwd"):
            loss.backward()
        with timed("Opt"):
            optimizer.step()
        step()


def thread():
    import threading

    runner = threading.Thread(target=plain)
    runner.start()
    runner.join()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step()
    globals()[sys.argv[1]]()
    write()
