"""Parts of the probe that watch a program's own ways, taken alone: what is state, which code a hook is, and that torch is put back."""

from __future__ import annotations

import importlib.util
import sys
import warnings

import pytest
import torch
from probe_events import part
from torch import nn

NET = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
SIZE = sum(parameter.numel() for parameter in NET.parameters())
ARRAYS = {name: value.detach().numpy() for name, value in NET.state_dict().items()}


@pytest.fixture
def saved_state(monkeypatch):
    module = part("facts.saved_state")
    monkeypatch.setattr(module, "_parameters", lambda: list(NET.parameters()))
    return module


@pytest.mark.parametrize(
    "value",
    [
        NET,
        {"optimizer": torch.optim.SGD(NET.parameters(), 0.1)},
        {"model": NET.state_dict(), "step": 3},
        [{"epoch": 1}, ARRAYS],
        {"0.weight": ARRAYS["0.weight"], "0.bias": ARRAYS["0.bias"]},
        nn.utils.parameters_to_vector(NET.parameters()).detach(),
        bytes(SIZE),
    ],
)
def test_what_looks_like_the_parameters_is_state(saved_state, value):
    assert saved_state.holds_state(value)


@pytest.mark.parametrize(
    "value",
    [
        {"loss": 0.5, "names": ["a", "b"]},
        torch.tensor(0.5),
        torch.zeros(3 * SIZE),  # as many numbers, but of no parameter's shape
        {"2.weight": ARRAYS["2.weight"]},
        bytes(SIZE - 1),
        None,
    ],
)
def test_numbers_words_and_samples_of_parameters_are_no_state(saved_state, value):
    assert not saved_state.holds_state(value)


def test_arrays_that_one_place_writes_in_a_step_add_up(saved_state, monkeypatch):
    monkeypatch.setattr(saved_state, "_parts", {})
    monkeypatch.setattr(saved_state.loop, "steps", 7)
    assert not saved_state.adds_up_to_state(("put",), ARRAYS["0.bias"][None])
    assert not saved_state.adds_up_to_state(("put",), ARRAYS["0.bias"])  # a second one of that shape is none of the network's
    assert not saved_state.adds_up_to_state(("elsewhere",), ARRAYS["0.weight"].T)
    assert saved_state.adds_up_to_state(("put",), [ARRAYS["0.weight"]])
    monkeypatch.setattr(saved_state.loop, "steps", 8)
    assert not saved_state.adds_up_to_state(("put",), ARRAYS["2.weight"])


def test_in_a_network_of_functions_what_gets_gradients_is_its_parameters(monkeypatch):
    module = part("facts.saved_state")
    monkeypatch.setattr(module, "_leaves", [])
    monkeypatch.setattr(module.loop, "trained", {})
    weight, bias = torch.randn(8, 4, requires_grad=True), torch.zeros(4, requires_grad=True)
    assert not module.holds_state(weight.detach())
    assert module.backward_begins(((torch.ones(2, 8) @ weight + bias).sum(),))
    assert module.holds_state([weight.detach().numpy(), bias.detach()]) and not module.holds_state(torch.zeros(3, 4))


def test_without_parameters_nothing_is_state(monkeypatch):
    module = part("facts.saved_state")
    monkeypatch.setattr(module, "_parameters", list)
    assert not module.holds_state(NET)


def test_a_file_is_state_by_its_size(saved_state, tmp_path):
    for size, state in ((SIZE, True), (SIZE - 1, False)):
        (tmp_path / "net.bin").write_bytes(bytes(size))
        assert saved_state.file_holds_state(str(tmp_path / "net.bin")) is state
    assert not saved_state.file_holds_state(str(tmp_path / "gone.bin"))


@pytest.fixture
def owners(tmp_path, monkeypatch):
    """Imports a source as a module of the owner's, and forgets it."""
    own = part("own")
    monkeypatch.setattr(own, "_roots", (f"{tmp_path}/",))
    own.inside.cache_clear()

    def load(source: str, name: str = "owners_module"):
        (tmp_path / f"{name}.py").write_text("import torch, torch.nn.functional as F\nfrom torch import nn\n" + source)
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield load
    own.inside.cache_clear()


@pytest.fixture
def window():
    window = part("facts.pure_work").PureWork(torch)
    window._begin(11)
    yield window
    window._close(write=False)


def test_a_window_touches_nothing_of_torch(owners):
    theirs = owners("def act(x): return torch.relu(x @ torch.eye(3))")
    watched = (torch, torch.Tensor, torch.nn.functional, torch.linalg, torch.fft, torch.special, torch.jit, theirs)
    before = [dict(vars(owner)) for owner in watched]
    window = part("facts.pure_work").PureWork(torch)
    for _ in range(2):
        window._begin(11)
        assert [dict(vars(owner)) for owner in watched] == before
        assert torch.equal(theirs.act(torch.ones(3)), torch.ones(3))
        window._close(write=False)
        assert torch.overrides._get_current_function_mode_stack() == [] and not torch.overrides.has_torch_function((torch.ones(1),))


def test_a_constructor_takes_scalars_for_numbers_in_a_window_and_after_it(window):
    numbers = (torch.ones(1, requires_grad=True).sum(),)
    assert torch.equal(torch.FloatTensor(numbers), torch.ones(1))  # with Tensor.__getitem__ exchanged: "len() of a 0-d tensor"
    window._close(write=False)
    assert torch.equal(torch.FloatTensor(numbers), torch.ones(1))


def test_a_window_that_ends_within_what_it_is_told_of_is_gone_at_the_next_boundary(window, monkeypatch):
    loop = part("phases.loop").loop
    monkeypatch.setattr(loop, "due", {})
    loss = torch.ones(2, requires_grad=True).sum()
    loss.register_hook(lambda grad: window._close(write=False))
    loss.backward()  # the method itself is what a mode is told of
    (later,) = loop.due
    later()
    assert torch.overrides._get_current_function_mode_stack() == []


def test_a_warning_in_a_window_is_one_of_the_owner_s_line_and_shown_once(owners, window):
    theirs = owners("def act(x):\n    for _ in range(2): F.softmax(x * 2)\n    return torch.softmax(x * 2, 0) + F.log_softmax(x)")
    with warnings.catch_warnings():
        shown = []
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, category, file, line, *rest: shown.append((file, line, str(message).partition(" has ")[0]))
        window._close(write=False)
        window._begin(14)
        theirs.act(torch.ones(3))
        window._close(write=False)
        theirs.act(torch.ones(3))
    names = {4: "softmax", 5: "log_softmax"}
    assert shown == [(theirs.__file__, line, f"Implicit dimension choice for {name}") for line, name in names.items()]


def test_torch_s_transformer_takes_its_fast_path_in_a_window(window, monkeypatch):
    layer = nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    fast = []
    original = torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *args: fast.append(1) or original(*args))
    with torch.no_grad():
        layer(torch.ones(1, 3, 8))
    assert fast == [1]


@pytest.mark.parametrize(
    "source",
    [
        "GAIN = {F.relu: 1.4}\ndef asked(): return F.relu is nn.functional.relu and GAIN[F.relu] and GAIN[nn.functional.relu]",
        "from torch.nn.functional import relu as act\ndef asked(f=act): return f is act and f is F.relu",
        "NAME = 'relu'\ndef asked(): return getattr(F, NAME) is torch.nn.functional.relu",
        "def asked(): return globals()['F'] is MODULE\nMODULE = F",
        "import sys\ndef asked(): return F is sys.modules['torch.nn.functional'] and torch is sys.modules['torch']",
        "WAYS = [torch.Tensor.relu, torch.Tensor.matmul]\ndef asked(): return WAYS == [torch.Tensor.relu, torch.Tensor.matmul]",
        "def asked(): return F.relu.__module__ == 'torch.nn.functional' and eval('F.relu') is WAS\nWAS = F.relu",
    ],
)
def test_what_the_program_compares_is_what_it_was_in_a_window_too(owners, window, source):
    assert owners(source).asked()


def test_what_is_scripted_or_traced_in_a_window_is_whole(window):
    for made in (torch.jit.script(nn.Linear(2, 2)), torch.jit.trace(lambda x: torch.relu(x + 1), torch.ones(2))):
        assert made(torch.ones(2)).shape == (2,)
    assert "aten::relu" in str(made.graph) and str(made.graph).count("aten::") == 2


def test_only_functions_that_compute_are_watched():
    is_work = part("facts.pure_work").PureWork._is_work
    assert is_work("relu", torch.relu) and is_work("softmax", torch.nn.functional.softmax) and is_work("mm", torch.Tensor.mm)
    for name in ("relu_", "empty", "is_tensor", "manual_seed", "set_num_threads", "Tensor", "no_grad", "float32"):
        assert not is_work(name, getattr(torch, name)), name


def test_tensors_that_are_not_plain_ones_of_the_host_have_no_digest():
    digest = part("facts.digests").digest_of
    assert digest((torch.ones(2), torch.float32), by_identity=True) == digest((torch.ones(2), torch.float32), by_identity=True)
    assert digest((torch.ones(2), torch.device("cpu")), True) == digest((torch.ones(2), torch.device("cpu")), True)
    assert digest(torch.ones(2), True) != digest(torch.zeros(2), True)
    assert digest(torch.empty(2, device="meta"), True) is None
    assert digest(object(), by_identity=False) is None


def test_a_lazy_network_is_complete_after_its_first_forward():
    is_complete = part("nested").is_complete
    net = nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(2))
    assert not is_complete(net)
    net(torch.zeros(1, 4))
    assert is_complete(net) and is_complete(NET)


def test_a_place_that_writes_often_is_looked_at_now_and_then_and_a_new_one_is_still_found(monkeypatch):
    written, loop = part("facts.written"), part("phases.loop").loop
    told, looks = [], []
    note = written._note
    monkeypatch.setattr(written, "fact", lambda kind, **about: told.append(about["at"][2]))
    monkeypatch.setattr(written, "_note", lambda *given, **named: looks.append(1) or note(*given, **named))
    monkeypatch.setattr(loop, "steps", 5)
    write = written._noting(str, None)

    def often():
        return write(1)

    def seldom():
        return write(2)

    assert [often() for _ in range(written.MANY)] == ["1"] * written.MANY and len(looks) == written.MANY
    for _ in range(40 * (written.REST + 1)):
        often()
    assert 40 <= len(looks) - written.MANY <= 41
    for _ in range(4 * (written.REST + 1)):
        seldom()
    assert {name.rpartition(".")[2] for name in told} >= {"seldom"}
