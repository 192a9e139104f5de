"""Functions that are bracketed and code that is traced: what a program can see of either."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading

import pytest
import torch
from probe_events import PROBE, part

KEPT = torch.ones(3)


@pytest.fixture
def calls():
    """Brackets a function; the list of calls that went through."""
    seen: list = []

    def wrap(function):
        def call(*args, **kwargs):
            seen.append((args, kwargs))
            return function(*args, **kwargs)

        return call

    def bracket(function):
        part("phases.brackets").exchange(function, wrap)
        return seen

    return bracket


def made():
    outer = 3

    def function(a, b=2, /, c=4, *more, d, e=5, **rest):
        """Says what it got."""
        return a, b, c, more, d, e, rest, outer

    return function


def test_a_bracketed_function_is_asked_as_it_was_and_says_of_itself_what_it_said(calls):
    function = made()
    before = inspect.signature(function), inspect.getsource(function), function.__doc__, function.__qualname__, function.__code__.co_name
    seen = calls(function)
    assert function(1, d=9) == (1, 2, 4, (), 9, 5, {}, 3)
    assert function(1, 2, 3, 4, 5, d=1, x=2) == (1, 2, 3, (4, 5), 1, 5, {"x": 2}, 3) and len(seen) == 2
    assert before == (
        inspect.signature(function),
        inspect.getsource(function),
        function.__doc__,
        function.__qualname__,
        function.__code__.co_name,
    )
    with pytest.raises(TypeError, match=r"function\(\) missing 1 required positional argument: 'a'"):
        function(d=1)


def test_a_bracketed_method_and_one_of_keywords_alone(calls):
    class Net:
        def name(self, *, prefix):
            return prefix + super().__repr__()[-1:]

    calls(Net.name)
    assert Net().name(prefix="<") == "<>"


def counted(until):
    try:
        for number in range(until):
            got = yield number
            if got:
                yield got
    except ValueError as error:
        yield str(error)
    finally:
        closed.append(until)
    return 7


closed: list = []


def test_a_bracketed_generator_is_a_generator():
    brackets = part("phases.brackets")
    brackets.exchange(counted, brackets._each_item)
    assert inspect.isgeneratorfunction(counted) and inspect.isgenerator(counted(1))

    def outer():
        return (yield from counted(2))

    run, items = outer(), []
    with pytest.raises(StopIteration) as end:
        while True:
            items.append(next(run))
    assert items == [0, 1] and end.value.value == 7 and closed == [2]
    run = counted(3)
    assert (next(run), run.send("x"), next(run), run.throw(ValueError("y"))) == (0, "x", 1, "y")
    run.close()
    assert closed == [2, 3]


def test_a_bracketed_function_is_pickled_by_value_without_us(calls):
    cloudpickle = pytest.importorskip("cloudpickle")
    function = made()
    seen = calls(function)
    assert pickle.loads(cloudpickle.dumps(function))(1, d=2) == (1, 2, 4, (), 2, 5, {}, 3) and seen == []


def test_a_hand_written_update_keeps_no_parameter_alive():
    update = part("phases.own_updates").OwnUpdate(["train.py", 3, "update"], [torch.ones(2), KEPT])
    gc.collect()
    assert [id(each) for each in update.param_groups[0]["params"]] == [id(KEPT)]


def test_code_that_hands_on_is_none_of_the_owner_s(calls):
    own = part("own")
    function = made()
    assert own.is_own(function.__code__)
    calls(function)
    assert not own.is_own(function.__code__)


@pytest.fixture
def untraced():
    """A coverage tool or a debugger of the test's own would be in the way."""
    if sys.gettrace() is not None:
        pytest.skip("somebody traces")
    yield
    sys.settrace(None)


def tracer():
    return sys.gettrace()


def test_a_tracer_of_somebody_else_stays(untraced):
    tracing = part("tracing")

    def ours(*_):
        return None

    def theirs(*_):
        return None

    assert tracing.begin(ours)
    sys.settrace(theirs)
    tracing.end(ours)
    mine = tracer()
    sys.settrace(None)
    assert mine is theirs
    sys.settrace(theirs)
    began = tracing.begin(ours)
    mine = tracer()
    sys.settrace(None)
    assert not began and mine is theirs


def test_nobody_is_traced_who_asks_for_a_tracer(untraced, monkeypatch):
    tracing = part("tracing")
    monkeypatch.setattr(tracing.own, "is_own", lambda code: code.co_name in ("asking", "idle"))

    def ours(*_):
        return None

    def idle():
        return tracing.begin(ours)

    def asking():
        return tracing.begin(ours), sys.gettrace()

    assert asking() == (False, None) and tracing.asks(asking.__code__)
    assert idle() and not tracing.asks(idle.__code__)
    tracing.end(ours)


def test_a_forked_child_is_not_traced(untraced):
    tracing = part("tracing")

    def ours(*_):
        return None

    tracing.begin(ours)
    tracing.after_fork()  # as the child runs it
    assert sys.gettrace() is None


def test_a_window_lets_go_of_the_frames_that_still_run(untraced):
    window = part("facts.calls").Window("gap")

    def running():
        yield sys._getframe()

    def around():
        frame = sys._getframe()
        window.end()
        return frame.f_trace, frame.f_trace_lines

    assert window.begin()
    left = around()
    assert left == (None, True) and window._stack == []


@pytest.mark.parametrize(("kept", "hashable"), [(1, True), (2, True), (5, False)])
def test_objects_that_come_and_go_are_no_keys_of_a_cache(untraced, kept, hashable):
    class Formatter:
        def format(self, record):
            return str(record.text)

    class Record:
        text = "loss"

    part("facts.calls")._objects.clear()  # of the same code, called by the case before
    window, formatter, records = part("facts.calls").Window("gap"), Formatter(), [Record() for _ in range(kept)]
    assert window.begin()
    for record in records:
        formatter.format(record)
        formatter.format(record)
    rows = list(window._rows)
    window.end()
    assert len(rows) == 2 * kept and all(row[6] for row in rows) is hashable


def test_variables_of_closures_are_not_written_back_where_other_threads_work(untraced):
    """Each thread counts what it adds; a trace function that holds the frame's variables would undo some of it."""
    count, added, stop, buffer = 0, 0, threading.Event(), os.urandom(1 << 20)

    def work():
        nonlocal count, added
        while not stop.is_set():
            count += 1
            added += 1

    def make(data):
        return count * 0 + len(data)

    thread = threading.Thread(target=work)
    thread.start()
    window = part("facts.calls").Window("gap")
    assert part("tracing").others_work() and window.begin()
    for _ in range(50):
        make(buffer)
    window.end()
    stop.set()
    thread.join()
    assert count == added and window._calls == 0 and not part("tracing").others_work()


def test_without_a_run_nothing_is_written_anywhere(tmp_path):
    code = "from trainflash_probe import writer; writer.fact('a'); [writer.emit(20) for _ in range(9)]; writer.notice('n')"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROBE), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])


def test_nothing_is_asked_in_a_window_while_fx_traces(untraced):
    """A window digests the arguments of the owner's functions: a proxy would write that into the graph."""

    class Doubled(torch.nn.Module):
        def forward(self, x):
            return doubled(x)

    def doubled(x):
        return x + x

    plain = [node.name for node in torch.fx.symbolic_trace(Doubled()).graph.nodes]
    window = part("facts.calls").Window("gap", keep=True)
    assert window.begin()
    traced = [node.name for node in torch.fx.symbolic_trace(Doubled()).graph.nodes]
    doubled(KEPT)
    window.end()
    assert traced == plain and [call.code for call in window.returned] == [doubled.__code__]
