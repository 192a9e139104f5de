"""Tells forwards that make training data (rollouts, generation), and a teacher's, from evaluations: none of them records gradients.

A rollout's forward runs a module that is trained, from the same place of the owner's code as before the first update (an update needs what
it gives); no DataLoader, no data function and no fixed input feeds that loop. In evaluation mode, and of a module that is not trained
itself, as a copy of the policy that acts, it must be seen besides that what it was shown, a little at a time, is what is trained on. Where
the first actions are drawn at random, those that a network chooses later are known by their rhythm: one forward of one row, from the same
place, in ACTED steps of ACTED_WITHIN.

A teacher's runs a module that is never trained, before the first update and in each step since, a few times in a row at most. So does that
of a network whose results another network trains on, as a critic on what a generator made, and one that is trained on the very same input
afterwards: both are parts of the step, too. All else is an evaluation.
"""

from __future__ import annotations

import itertools
import sys
import weakref

from . import stack

MAX_PATHS = 16
MAX_DEPTH = 24  # owner's frames looked at
MOST_IN_A_ROW = 4  # forwards of a teacher, without another module's between them: several views of a batch; an evaluation has more

MOST_SHOWN, MOST_VALUES, ROWS = 512, 200_000, 16  # forwards and their values that are kept before the first update; rows compared
ACTED, ACTED_WITHIN = 3, 16  # own: as often no text is generated, nor one sample validated, a row at a time
SOME = 4  # rows of a result that are compared

_paths: dict = {}  # call path -> (id, mode) of the modules that ran there, before the first update
_shown: list = []  # (call path, module, its mode, its input): until training shows whether that was its data
_trained_on: set = set()  # (call path, module, its mode) of which that is so
_made: list = []  # (call path, module, its mode, rows that it gave): until the first update shows whether another network trained on it
_given: dict = {}  # (call path, module, its mode) -> its newest input: until the first update shows whether that is trained on
_feeding: dict = {}  # call path -> (id, mode) of the modules of which that is so
asked = None  # id of the module that runs without gradients before the first update, whose result is wanted
_teachers: dict = {}  # id of a module -> [step it ran in last, forwards of that step before it, forwards in a row]
_single: dict = {}  # call path -> steps in which it showed a trained module one row; None: several in a row
_opened = None  # the path that opened the newest evaluation which a forward began
impossible = False  # the loop's data is known to come from elsewhere
_rolled = False  # a rollout has run since training had another input


def note(module: object, args: tuple, loop) -> None:
    """A forward without gradients before the first update."""
    global asked
    _teachers[id(module)] = [0, 0, 1]
    if impossible or len(_paths) >= MAX_PATHS:
        return
    asked = id(module)
    if args and _plain(args[0]):
        key = _path(), id(module), module.training
        if key in _given or len(_given) < MAX_PATHS:
            _listen(loop)
            _given[key] = weakref.ref(args[0])
    if module.training:
        _paths.setdefault(_path(), set()).add((id(module), True))
    if args and _plain(args[0]) and len(_shown) < MOST_SHOWN and args[0].numel() * len(_shown) <= MOST_VALUES:
        if on_forward not in loop.on_forward:
            loop.on_forward.append(on_forward)
        path = _path()
        with loop.unseen():
            _shown.append((path, id(module), module.training, args[0].detach().clone()))


def gave(module: object, result: object, loop) -> None:
    """What `asked` gave."""
    global asked
    asked = None
    if not _plain(result) or result.dim() < 2 or len(_made) >= MAX_PATHS or result[:SOME].numel() > MOST_VALUES:
        return
    _listen(loop)
    with loop.unseen():
        _made.append((_path(), id(module), module.training, result.detach()[:SOME].clone()))


def _listen(loop) -> None:
    if on_training_forward not in loop.on_forward:
        loop.on_forward.append(on_training_forward)


def on_training_forward(module: object, args: tuple, kwargs: dict) -> None:
    """A forward before the first update: another network may train on what was given without gradients."""
    loop = sys.modules[__package__ + ".loop"].loop
    if loop.steps or loop.pending:
        loop.on_forward = [each for each in loop.on_forward if each is not on_training_forward]
        _made.clear()
        _given.clear()
        return
    if not sys.modules["torch"].is_grad_enabled() or not args or not _plain(args[0]):
        return
    for (path, key, mode), known in _given.items():
        if key == id(module) and known() is args[0]:
            _feeds(path, key, mode)
    given = args[0].detach()
    for each in _made[:]:
        path, key, mode, result = each
        if key == id(module) or given.dim() != result.dim() or given.dtype != result.dtype or given.shape[1:] != result.shape[1:]:
            continue
        wide = result[0].numel()
        known = given.reshape(-1, wide)
        if wide and _holds(known, result):
            _made.remove(each)
            _feeds(path, key, mode)


def _feeds(path, key: int, mode: bool) -> None:
    """What runs there belongs to the step, and makes no data."""
    _feeding.setdefault(path, set()).add((key, mode))
    _paths.get(path, set()).discard((key, mode))


def feeds(module: object) -> bool:
    """Whether another network trains on what the forward that is about to run gives."""
    return bool(_feeding) and (id(module), module.training) in _feeding.get(_path(), ())


def on_forward(module: object, args: tuple, kwargs: dict) -> None:
    """A forward: the first one of training shows whether what was seen before it has made its data."""
    torch = sys.modules["torch"]
    if not torch.is_grad_enabled() or (not getattr(module, "_parameters", None) and not getattr(module, "_modules", None)):
        return
    sys.modules[__package__ + ".loop"].loop.remove(on_forward)
    shown = _shown[:]
    _shown.clear()
    if not args or not _plain(args[0]) or args[0].dim() < 2:
        return
    given = args[0].detach()
    wide = given[0].numel()
    fitting = [each for each in shown if wide and each[3].dtype == given.dtype and each[3].numel() % wide == 0]
    if not fitting or max(each[3].numel() for each in fitting) > given.numel() / 2:
        return  # a set of samples that is looked at whole is evaluated
    known = torch.cat([each[3].reshape(-1, wide) for each in fitting])
    if _holds(known, given[:ROWS]):
        for path, key, mode, _ in fitting:
            _paths.setdefault(path, set()).add((key, mode))
            _trained_on.add((path, key, mode))


def _holds(known, rows) -> bool:
    """Whether each of `rows` is one of the rows of the matrix `known`."""
    return all(bool((known == row.reshape(-1)).all(1).any()) for row in rows)


def _plain(value: object) -> bool:
    """A tensor that can be looked at without waiting for a device."""
    torch = sys.modules["torch"]
    return type(value) is torch.Tensor and value.device.type == "cpu" and value.layout is torch.strided


def rule_out() -> None:
    """A data function was found, or an input that stays."""
    global impossible
    impossible = True
    _paths.clear()


def same_input(same: bool) -> None:
    """Whether a step trains on the very tensor of the step before: nothing made data between them.

    Epochs over one batch of a rollout do so as well; but not behind another rollout.
    """
    global impossible, _rolled
    if not same:
        _rolled = False
    elif _rolled:
        rule_out()
    else:
        impossible = True
        for path, known in _paths.items():
            known &= {key[1:] for key in _trained_on if key[0] == path}


def makes_data(module: object, trained: dict) -> bool:
    """Whether the forward that is about to run is a rollout's."""
    global _rolled
    if not _paths or (id(module) not in trained and not _trained_on):
        return False
    path, known = _path(), (id(module), module.training)
    rolls = known in _paths.get(path, ()) and (id(module) in trained or (path, *known) in _trained_on)
    _rolled = _rolled or rolls
    return rolls


def acts(module: object, args: tuple, loop) -> bool:
    """Whether the forward that is about to run, and would open an evaluation, is another single action of one that acts in the steps."""
    global _opened
    _opened = None
    if loop.last_serial or not module.training or id(module) not in loop.trained or not args or not _plain(args[0]):
        return False
    if not args[0].dim() or (args[0].dim() > 1 and args[0].shape[0] != 1):
        return False
    path = _path()
    known = _single.setdefault(path, []) if path in _single or len(_single) < MAX_PATHS else None
    if known is None:
        return False
    _opened = path
    known[:] = [*known[1 - ACTED :], loop.steps]
    if len(known) < ACTED or known[-1] - known[0] >= ACTED_WITHIN or len(set(known)) < ACTED:
        return False
    _paths.setdefault(path, set()).add((id(module), True))
    return True


def goes_on() -> None:
    """The evaluation that runs has another forward: no single action."""
    global _opened
    if _opened is not None:
        _single[_opened] = _opened = None


def teaches(module: object, loop) -> bool:
    """Whether the forward that is about to run is a teacher's."""
    last = _teachers.get(id(module))
    if last is None or id(module) in loop.trained:
        return False
    step, forwards = loop.steps + loop.pending, 0 if loop.pending else loop.forwards
    in_a_row = last[2] + 1 if last[0] == step and last[1] + 1 == forwards else 1
    if step - last[0] > 1 or in_a_row > MOST_IN_A_ROW:
        del _teachers[id(module)]
        return False
    last[:] = step, forwards, in_a_row
    return True


def _path() -> tuple:
    return tuple([(frame.f_code, frame.f_lineno) for frame in itertools.islice(stack.frames(), MAX_DEPTH)])
