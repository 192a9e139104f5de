"""Training that uses, between and inside its steps, much of what torch offers; prints what each of it gave."""

import copy
import io
import os
import pickle
import warnings

import torch
from torch import fx, nn
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
from torch.nn.utils import parametrizations, prune
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Called(Net):
    """Its own `__call__`, and attributes that are made up when they are asked for."""

    def __call__(self, x, **options):
        return super().__call__(x, **options) * 2

    def __getattr__(self, name):
        if name.startswith("made_"):
            return name[5:]
        return super().__getattr__(name)


class Fixed(torch.Tensor):
    """A subclass that counts what is asked of it."""

    asked = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.asked += 1
        return super().__torch_function__(function, types, args, kwargs or {})


def digest(value) -> str:
    return f"{float(torch.as_tensor(value).detach().double().abs().sum()):.12g}"


def traced(model, x):
    return digest(torch.jit.trace(model, x)(x))


def scripted(model, x):
    return digest(torch.jit.script(copy.deepcopy(model))(x))


def symbolic(model, x):
    graph = fx.symbolic_trace(model)
    return digest(graph(x)), [node.op for node in graph.graph.nodes]


def exported(model, x):
    return digest(torch.export.export(model, (x,)).module()(x))


def copied(model, x):
    return digest(copy.deepcopy(model)(x)), sorted(copy.deepcopy(model).__dict__) == sorted(Net().__dict__)


def pickled(model, x):
    again = pickle.loads(pickle.dumps(model))
    file = io.BytesIO()
    torch.save(model, file)
    size = file.tell()
    file.seek(0)
    return digest(again(x)), digest(torch.load(file, weights_only=False)(x)), size


def stacked(model, x):
    parameters, buffers = stack_module_state([Net(), Net()])
    return digest(vmap(lambda p, b: functional_call(model, (p, b), (x,)))(parameters, buffers))


def jacobian(model, x):
    return digest(jacrev(lambda each: model(each))(x[0])), digest(vmap(grad(lambda each: model(each).sum()))(x))


def parametrized(model, x):
    other = copy.deepcopy(model)
    parametrizations.weight_norm(other.first)
    parametrizations.spectral_norm(other.second)
    prune.l1_unstructured(other.first, "bias", 0.5)
    return digest(other(x)), len(list(other.parameters()))


def averaged(model, x):
    mean = AveragedModel(model)
    mean.update_parameters(model)
    return digest(mean(x))


def hooked(model, x):
    seen = []
    handles = [
        model.register_forward_pre_hook(lambda module, args, kwargs: seen.append("before"), with_kwargs=True),
        model.register_forward_hook(lambda module, args, output: seen.append("after")),
        model.register_full_backward_hook(lambda module, inputs, outputs: seen.append("backward")),
    ]
    model(x).sum().backward()
    for handle in handles:
        handle.remove()
    model.zero_grad()
    return seen


def recomputed(model, x):
    loss = checkpoint(model, x, use_reentrant=False).sum() + checkpoint(model, x.clone().requires_grad_(), use_reentrant=True).sum()
    loss.backward()
    found = digest(model.first.weight.grad)
    model.zero_grad()
    return found


def exchanged(model, x):
    """Another forward on the instance, then the class's again."""
    model.forward = lambda given: given.sum()
    first = digest(model(x))
    del model.forward
    return first, digest(model(x))


def resized(model, x):
    storage = x.untyped_storage()
    size = storage.nbytes()
    kept = x.clone()
    storage.resize_(0)
    storage.resize_(size)
    x.copy_(kept)
    return digest(x), x.is_shared(), torch.empty(0).resize_(5).numel()


def shared(model, x):
    other = copy.deepcopy(model).share_memory()
    child = os.fork()
    if child == 0:
        with torch.no_grad():
            other.first.weight.fill_(1.0)
        os._exit(0)
    os.waitpid(child, 0)
    return digest(other.first.weight)


def subclassed(model, x):
    given = x.as_subclass(Fixed)
    before = Fixed.asked
    out = model(given)
    return digest(out.as_subclass(torch.Tensor)), Fixed.asked - before


def on_meta(model, x):
    with torch.device("meta"):
        other = Net()
    return other.first.weight.is_meta, len(list(other.to_empty(device="cpu").parameters()))


def inferred(model, x):
    with torch.inference_mode():
        out = model(x)
    return digest(out), out.is_inference()


def called(model, x):
    own = Called()
    return digest(own(x)), own.made_up, sorted(own.state_dict())


def compiled(model, x):
    other = copy.deepcopy(model)
    other.compile(backend="eager")
    return digest(other(x)), digest(torch.compile(model, backend="eager", fullgraph=True)(x))


def dispatched(model, x):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.calls += 1
            return function(*args, **(kwargs or {}))

    with Count() as count:
        model(x)
    return count.calls


def counted(model, x):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    model.zero_grad()
    return counter.get_total_flops()


def profiled(model, x):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        model(x)
    return sum(event.key == "aten::linear" for event in profile.key_averages())


TOOLS = [
    traced, scripted, symbolic, exported, copied, pickled, stacked, jacobian, parametrized, averaged, hooked, recomputed,
    exchanged, resized, shared, subclassed, on_meta, inferred, called, compiled, dispatched, counted, profiled,
]  # fmt: skip


def main():
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.utils.data.TensorDataset(torch.randn(480, 8), torch.randn(480, 4))
    step, total = 0, 0.0
    for _ in range(2):
        for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step % 4 == 3 and step // 4 < len(TOOLS):
                tool = TOOLS[step // 4]
                state = torch.get_rng_state()
                print(f"{tool.__name__}: {tool(model, x.clone())}")
                torch.set_rng_state(state)
            step += 1
    print(step, repr(total), digest(model.first.weight))


if __name__ == "__main__":
    main()
