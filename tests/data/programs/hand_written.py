"""What owners write where torch has a part for it: updates, losses, methods around networks. The argument chooses.

Parts sleep a known time, on the very line that does the work; the loss of each step is printed to the last bit.
"""

import logging
import sys
import threading
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

STEPS = 48
x, y = torch.randn(16, 8, generator=torch.Generator().manual_seed(1)), torch.ones(16, 1)


def network(width=8):
    return nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 1))


def tell(loss):
    print(float(loss.detach()).hex())


class Descent:
    """An optimizer of the owner's own."""

    def __init__(self, parameters, how):
        self.parameters, self.how = list(parameters), how

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        time.sleep(0.004)
        if self.how == "foreach":
            torch._foreach_add_(self.parameters, [parameter.grad for parameter in self.parameters], alpha=-0.01)
            return
        for parameter in self.parameters:
            if self.how == "swapped":  # other memory for each parameter; the old is given back to the system
                parameter.data = parameter.data - 1e-6 * parameter.grad
                continue
            (parameter.data if self.how == "data" else parameter).sub_(0.01 * parameter.grad)


def own_optimizer(how="plain", every=1, width=8):
    model = network(width)
    optimizer = Descent(model.parameters(), how)
    for number in range(STEPS * every):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if number % every == every - 1:
            optimizer.step()
            optimizer.zero_grad()
            tell(loss)


def own_optimizer_of_data():
    own_optimizer("data")


def own_optimizer_swapped():
    own_optimizer("swapped", width=100_000)  # so large that its memory leaves the process when it is freed


def own_optimizer_foreach():
    own_optimizer("foreach")


def own_optimizer_accumulates():
    own_optimizer(every=2)


def descend(parameters, gradients):
    time.sleep(0.004)
    return {name: parameter - 0.01 * gradients[name] for name, parameter in parameters.items()}


def functional():
    """New parameters take the place of the old ones."""
    from torch.func import functional_call, grad_and_value

    model = network()
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss_of(parameters):
        time.sleep(0.003)
        return F.mse_loss(functional_call(model, parameters, (x,)), y)

    both = grad_and_value(loss_of)
    for _ in range(STEPS):
        gradients, loss = both(parameters)
        parameters = descend(parameters, gradients)
        tell(loss)


def without_modules():
    weights = [torch.zeros(8, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]

    def update():
        time.sleep(0.004)
        for weight in weights:
            weight.data -= 0.01 * weight.grad
            weight.grad = None

    for _ in range(STEPS):
        loss = (x @ weights[0] + weights[1] - y).square().mean()
        loss.backward()
        update()
        tell(loss)


def inline_update():
    model = network()
    for _ in range(STEPS):
        loss = F.mse_loss(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                time.sleep(0.001) or parameter.sub_(0.01 * parameter.grad)
        time.sleep(0.002)
        tell(loss)


def loop_of(loss_of, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tell(loss)


def judged(model):
    """A loss written as an expression, and a metric in the midst of it."""
    out = model(x)
    error = time.sleep(0.003) or (out - y).square()
    for value in out.tolist()[:3]:
        time.sleep(0.001 + 0 * value[0])
    return time.sleep(0.002) or error.mean()


def written_loss():
    loop_of(judged, network())


calls = 0


def rarely_judged(model):
    """In every eighth step a metric that takes far longer than the loss."""
    global calls
    calls += 1
    out = model(x)
    loss = time.sleep(0.002) or (out - y).square().mean()
    if calls % 8 == 0:
        time.sleep(0.2)
    return loss


def rare_metric():
    loop_of(rarely_judged, network())


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = network(), network()

    def judge(self, x):
        logits = self.actor(x)
        likely = time.sleep(0.005) or F.logsigmoid(logits)
        return likely, self.critic(x)


def method_around_networks():
    def loss_of(agent):
        likely, value = agent.judge(x)
        return (likely * value.detach()).mean() + F.mse_loss(value, y)

    loop_of(loss_of, Agent())


def logged():
    """Each record is slow to make, before any handler sees it."""

    def record(*args, **kwargs):
        time.sleep(0.003)
        return logging.LogRecord(*args, **kwargs)

    logging.basicConfig(stream=sys.stdout, format="%(filename)s:%(lineno)d:%(funcName)s %(message)s")
    logging.setLogRecordFactory(record)

    def deeper(loss):
        logging.getLogger("owner").warning("from %s", "outside", stacklevel=2)
        return loss

    def loss_of(model):
        loss = F.mse_loss(model(x), y)
        logging.getLogger("owner").warning("loss")
        return deeper(loss)

    loop_of(loss_of, network())


class Told(nn.Module):
    """Remembers when it is put into another mode."""

    def __init__(self):
        super().__init__()
        self.when = {True: [], False: []}

    def train(self, mode=True):
        self.when[mode].append(time.monotonic_ns())
        return super().train(mode)

    def forward(self, x):
        return x


def switches(back):
    """Evaluates in each step; the function that evaluates switches `back` to training, or the loop does."""
    model = nn.Sequential(network(), Told())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def evaluate():
        model.eval()
        with torch.no_grad():
            model(x)
        if back:
            model.train()

    for _ in range(STEPS):
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        evaluate()
        if not back:
            model.train()
    print(*model[1].when[False])
    print(*model[1].when[True])


def switches_back():
    switches(True)


def switches_later():
    switches(False)


def thread():
    """Another thread than the main one trains, over one pass of a loader."""

    def train():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for rows, targets in DataLoader(TensorDataset(x.repeat(STEPS, 1), y.repeat(STEPS, 1)), batch_size=16):
            loss = F.mse_loss(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tell(loss)

    runner = threading.Thread(target=train)
    runner.start()
    runner.join()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
