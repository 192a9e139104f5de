"""What a stack means, which processes a PID stands for, what hangs and what is slow: from given stacks, trees and counters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from test_telemetry import tree

from trainflash import report
from trainflash.cli import diagnose as command
from trainflash.cli import main
from trainflash.errors import UsageError
from trainflash.live import answer, permission, places, target, threads
from trainflash.live import window as watching_window
from trainflash.live.naming import named
from trainflash.live.places import Place
from trainflash.live.sites import DEEPEST, cost_sites, frames_of
from trainflash.live.stacks import Frame, find_spy
from trainflash.live.triage import triage
from trainflash.live.window import Counters, Watched, Window
from trainflash.schema import GpuStat, HostStat, Live, Telemetry
from trainflash.telemetry import processes
from trainflash.workflow import watching

SITE = "/venv/lib/python3.11/site-packages"
STDLIB = "/usr/lib/python3.11"
LOADER = f"{SITE}/torch/utils/data/dataloader.py"
FETCH = f"{SITE}/torch/utils/data/_utils/fetch.py"
TRAIN = Frame("/owner/train.py", 12, "main")


def stack(*frames: tuple[str, str] | Frame) -> tuple[Frame, ...]:
    return tuple(frame if isinstance(frame, Frame) else Frame(frame[0], 7, frame[1]) for frame in frames)


@pytest.mark.parametrize(
    ("frames", "doing", "call"),
    [
        (
            [(f"{STDLIB}/multiprocessing/queues.py", "Queue.get"), (LOADER, "_MultiProcessingDataLoaderIter._try_get_data")],
            "waiting for data",
            None,
        ),
        ([(f"{SITE}/PIL/Image.py", "Image.load"), (FETCH, "_MapDatasetFetcher.fetch"), (LOADER, "__next__")], "data", None),
        (
            [(f"{SITE}/torch/distributed/distributed_c10d.py", "barrier"), (f"{SITE}/torch/distributed/c10d_logger.py", "wrapper")],
            "collective",
            "barrier",
        ),
        ([(f"{SITE}/torch/autograd/graph.py", "_engine_run_backward"), (f"{SITE}/torch/_tensor.py", "Tensor.backward")], "backward", None),
        ([(f"{SITE}/torch/optim/sgd.py", "SGD.step")], "optimizer", None),
        ([(f"{SITE}/torch/nn/modules/linear.py", "Linear.forward")], "forward", None),
        ([(f"{SITE}/torch/serialization.py", "save")], "checkpoint", None),
        ([(f"{STDLIB}/threading.py", "Condition.wait"), (f"{STDLIB}/threading.py", "Event.wait")], "lock", None),
        ([(f"{STDLIB}/bdb.py", "Bdb.trace_dispatch")], "debugger", None),
        ([(f"{STDLIB}/logging/__init__.py", "StreamHandler.flush")], "logging", None),
        (
            [(f"{STDLIB}/selectors.py", "select"), (LOADER, "_MultiProcessingDataLoaderIter._shutdown_workers")],
            "starting and stopping workers",
            None,
        ),
        ([(f"{SITE}/torch/distributed/elastic/agent/server/api.py", "run")], "waiting for ranks", None),
        ([], "python", None),
        ([(f"{STDLIB}/json/decoder.py", "JSONDecoder.decode")], "python", None),
    ],
)
def test_what_a_stack_does(frames, doing, call):
    found = places.place(stack(*frames, TRAIN))
    assert (found.doing, found.own) == (doing, TRAIN)
    assert call is None or found.call == call


def test_qualified_and_bare_names_mean_the_same():
    assert places.place(stack((LOADER, "_try_get_data"), TRAIN)) == places.place(stack((LOADER, "Iter._try_get_data"), TRAIN))


def test_a_worker_that_has_nothing_to_do_and_one_that_reads():
    loop = (f"{SITE}/torch/utils/data/_utils/worker.py", "_worker_loop")
    getitem = Frame("/owner/data.py", 31, "Images.__getitem__")
    waits = stack((f"{STDLIB}/selectors.py", "select"), (f"{STDLIB}/multiprocessing/queues.py", "Queue.get"), loop, TRAIN)
    reads = stack(getitem, (FETCH, "_MapDatasetFetcher.fetch"), loop, TRAIN)
    assert (places.worker_place(waits).doing, places.worker_place(waits).own) == ("waiting for a request", None)
    assert (places.worker_place(reads).doing, places.worker_place(reads).own) == ("data", getitem)
    assert places.is_worker(reads) and not places.is_worker(stack(TRAIN))
    assert str(places.location(getitem, "/owner")) == "data.py:31" and places.location(getitem, "/owner").function == "__getitem__"
    assert places.location(getitem, "/other").file == "/owner/data.py"


@pytest.mark.parametrize(
    ("text", "doing"),
    [("loss.item()", "waiting for the device"), ("with lock:", "lock"), ("answer = input()", "input"), ("x = f(y)", "python")],
)
def test_a_builtin_leaves_no_frame_but_a_line(tmp_path, text, doing):
    source = tmp_path / "train.py"
    source.write_text(f"{text}\n")
    assert places.place((Frame(str(source), 1, "main"),)).doing == doing


# A window as it would have been seen.


def watched(
    pid: int,
    *doing: Place,
    role="training",
    rank=None,
    cpu=0.0,
    queued=0.0,
    switches=0.0,
    waits=(None, None),
    parent=1,
    seconds=10.0,
    threads=1,
):
    at = processes.Stat(pid, parent, "S", "python", 0.0, 0.0, threads, 1)
    last = processes.Stat(pid, parent, "S", "python", cpu * seconds * threads, 0.0, threads, 1)
    each = Watched(pid, parent, ("python", "train.py"), "/owner", rank, True, at, last, 0.0, seconds, {})
    each.after = {pid + n: Counters("python", cpu * seconds, queued * seconds, int(switches * seconds)) for n in range(threads)}
    each.role, each.doing, each.waits_for = role, doing, waits
    each.io_before = each.io_after = processes.Io(0, 0, 0, 0)
    return each


def at(line: int, doing: str, call: str = "", file: str = "/owner/train.py") -> Place:
    return Place(doing, Frame(file, line, "main"), call)


def seen(*each: Watched, host: HostStat | None = None, gpus: tuple[GpuStat, ...] = ()) -> Window:
    return Window(target.Target(1, (1,)), 10.0, each, Telemetry(0.5, host, gpus), ())


def gpu(**values) -> GpuStat:
    measured = [name for name in GpuStat.__dataclass_fields__ if name not in ("index", "name", "samples", "throttled", "sawtooth")]
    none = dict.fromkeys(measured)
    return GpuStat(0, "NVIDIA H200", 20, **{**none, **values})


def host(**values) -> HostStat:
    fields = [name for name in HostStat.__dataclass_fields__ if name != "samples"]
    return HostStat(20, **{**dict.fromkeys(fields), **values})


def only(window: Window):
    findings, abstained = triage(window)
    assert abstained is None, abstained
    return findings[0]


def test_all_ranks_in_the_same_collective():
    barrier = [at(30, "collective", "barrier")] * 100
    found = only(seen(watched(10, *barrier, rank=0), watched(20, *barrier, rank=1)))
    assert (found.kind, found.bound_by, found.location.line) == ("hung", "communication", 30)
    assert "all 2 ranks wait in `barrier`" in found.summary


def test_one_rank_in_another_place():
    barrier, other = [at(30, "collective", "barrier")] * 100, [at(44, "python")] * 100
    found = only(seen(watched(10, *barrier, rank=0), watched(20, *other, rank=1), watched(30, *barrier, rank=2)))
    assert (found.kind, found.location.line) == ("hung", 44)
    assert "rank 1 stands at train.py:44 in main while ranks 0, 2 waits at train.py:30" in found.summary


def test_ranks_that_wait_for_one_that_works_are_slow_not_hung():
    waits, works = [at(30, "collective", "all_reduce")] * 100, [at(44, "python")] * 100
    found = only(seen(watched(10, *waits, rank=0), watched(20, *works, rank=1, cpu=1.0)))
    assert (found.kind, found.bound_by, found.location.line) == ("rank_straggler", "communication", 44)


def test_a_batch_that_takes_longer_than_the_window_is_slow_not_hung():
    main = watched(10, *[at(12, "waiting for data")] * 100)
    worker = watched(20, *[at(31, "data", file="/owner/data.py")] * 100, role="worker", parent=10, cpu=0.95)
    found = only(seen(main, worker))
    assert (found.kind, found.location.file) == ("input_cpu", "data.py")


def test_a_worker_without_a_core_computes_too():
    main = watched(10, *[at(12, "waiting for data")] * 100, cpu=0.02, switches=9)
    worker = watched(20, *[at(31, "data")] * 100, role="worker", parent=10, cpu=0.35, queued=0.6)
    assert only(seen(main, worker)).kind == "input_cpu"


def test_a_host_that_spins_for_a_stuck_device():
    waits = [at(40, "waiting for the device")] * 200
    stuck = watched(10, *waits, cpu=1.0)
    assert only(seen(stuck, gpus=(gpu(busy=1.0),))).kind == "hung"
    assert only(seen(stuck)).kind != "hung", "without a busy GPU it computes"
    assert only(seen(watched(10, *waits[:-1], at(41, "forward"), cpu=1.0), gpus=(gpu(busy=1.0),))).kind != "hung"


def test_too_short_a_look_calls_nothing_hung():
    short = watched(10, *[at(12, "lock")] * 30, seconds=2.0)
    assert triage(seen(short))[0] == ()


def test_too_few_stacks_abstain():
    findings, abstained = triage(seen(watched(10, *[at(12, "data")] * 5, cpu=1.0, switches=50)))
    assert findings == () and "only 5 stacks" in abstained


def test_full_utilisation_at_little_power_is_a_trickle():
    busy = watched(10, *[at(12, "forward")] * 100, cpu=1.0)
    found = only(seen(busy, gpus=(gpu(busy=0.99, memory_busy=0.03, power_w=180.0, power_limit_w=700.0),)))
    assert found.kind == "launch_overhead"
    assert {item.name: item.value for item in found.evidence}["power"] == 180.0
    assert only(seen(busy, gpus=(gpu(busy=0.99, power_w=600.0, power_limit_w=700.0),))).kind == "compute"
    assert only(seen(busy, gpus=(gpu(busy=0.99),))).kind == "compute", "power that was not measured accuses nobody"


def test_a_gpu_that_is_too_hot():
    busy = watched(10, *[at(12, "forward")] * 100, cpu=1.0)
    assert only(seen(busy, gpus=(gpu(busy=0.9, throttled={"hardware_thermal": 0.6}),))).kind == "throttling"
    assert only(seen(busy, gpus=(gpu(busy=0.9, throttled={"hardware_thermal": 0.05}),))).kind == "compute"


def test_sawtooth_stands_in_the_evidence():
    main = watched(10, *[at(12, "data")] * 100, cpu=1.0)
    found = only(seen(main, gpus=(gpu(busy=0.2, sawtooth=True),)))
    assert found.kind == "input_cpu"
    assert {"gpu_0_busy", "gpu_0_sawtooth"} <= {item.name for item in found.evidence}


def test_many_threads_on_few_cores():
    pool = watched(10, *[at(12, "forward")] * 100, cpu=0.25, queued=0.75, threads=8)
    found = only(seen(pool, host=host(cpus=2.0)))
    assert (found.kind, found.bound_by) == ("thread_oversubscription", "host")
    assert only(seen(pool, host=host(cpus=16.0))).kind == "compute"
    assert only(seen(pool)).kind == "compute", "without a budget nothing is said"


def test_python_in_the_loop_needs_the_gil():
    main = watched(10, *[at(12, "python")] * 100, cpu=1.0)
    assert triage(seen(main))[0] == (), "nobody looked at who holds it"
    main.looks = [type("Look", (), {"holds_gil": 10})()] * 5
    assert only(seen(main)).kind == "host_code"
    main.looks = [type("Look", (), {"holds_gil": None})()] * 5
    assert triage(seen(main))[0] == (), "a library's native code"


def test_a_tie_is_called_one():
    doing = [at(12, "data")] * 50 + [at(80, "checkpoint")] * 48 + [at(90, "forward")] * 2
    found = only(seen(watched(10, *doing, cpu=1.0)))
    assert (found.kind, found.tied_with) == ("input_cpu", ("checkpoint",))


# Cost sites.

STEP = Frame("/owner/train.py", 20, "main")
ITEM = Frame("/owner/data.py", 31, "Images.__getitem__")
WORKER = (f"{SITE}/torch/utils/data/_utils/worker.py", "_worker_loop")
WAITS = [(f"{STDLIB}/multiprocessing/queues.py", "Queue.get"), (LOADER, "_MultiProcessingDataLoaderIter._try_get_data")]
ELASTIC = (f"{SITE}/augmentlib/transforms.py", "Elastic.__call__")
SORT = (f"{SITE}/numpy/_core/fromnumeric.py", "sort")
CALL = (f"{SITE}/torch/nn/modules/module.py", "Module._call_impl")
LINEAR = (f"{SITE}/torch/nn/modules/linear.py", "Linear.forward")
ENGINE = (f"{SITE}/torch/autograd/graph.py", "_engine_run_backward")
ADAM = (f"{SITE}/torch/optim/adam.py", "Adam.step")


def sampled(pid: int, *stacks: tuple[Frame, ...], role="training", **values) -> Watched:
    """A process with these stacks of its main thread."""
    tell = places.worker_place if role == "worker" else places.place
    each = watched(pid, *(tell(each) for each in stacks), role=role, **values)
    each.stacks = {pid: list(stacks)}
    return each


def sites(*each: Watched):
    return [cost.site for cost in cost_sites(seen(*each))[0]]


def test_a_site_names_the_library_below_its_line_and_not_the_arithmetic_that_that_calls():
    makes = stack(SORT, ELASTIC, ITEM, (FETCH, "_MapDatasetFetcher.fetch"), (LOADER, "__next__"), TRAIN)
    [first, second] = sites(sampled(10, *[makes] * 9, stack(LINEAR, CALL, STEP)))
    assert (str(first.location), first.phase, first.share, first.run_share) == ("data.py:31", "Data", 0.9, 0.9)
    assert [(place.file, place.function) for place in first.path] == [("augmentlib/transforms.py", "Elastic.__call__")]
    assert (second.phase, str(second.location)) == ("Fwd", "train.py:20")


def test_phases_of_the_owners_own_code_come_from_what_it_runs_in():
    forward = Frame("/owner/model.py", 5, "Net.forward")
    hook = Frame("/owner/watch.py", 8, "record")
    update = Frame("/owner/optim.py", 9, "Own.step")
    closure = Frame("/owner/train.py", 40, "closure")
    wrapper = (f"{SITE}/torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper")
    found = sites(
        sampled(
            10,
            stack(forward, CALL, STEP),
            stack(hook, ENGINE, STEP),
            stack(update, wrapper, STEP),
            stack(closure, ADAM, wrapper, STEP),
            stack(LINEAR, CALL, Frame("/owner/again.py", 3, "again"), ENGINE, STEP),
        )
    )
    assert {site.location.file: (site.phase, site.called_back) for site in found} == {
        "model.py": ("Fwd", ""),
        "watch.py": ("Bwd", "hook"),
        "optim.py": ("Opt", ""),
        "train.py": ("Other", ""),
        "again.py": ("Bwd", "hook"),
    }
    assert {site.location.file: site.backward for site in found if site.backward} == {"watch.py": 0.2, "again.py": 0.2}


def test_a_line_that_calls_modules_is_in_forward_while_it_stands_in_an_operator():
    [site] = sites(sampled(10, stack(LINEAR, CALL, STEP), stack(STEP)))
    assert (site.phase, site.share) == ("Fwd", 1.0)
    found = sites(sampled(10, stack(LINEAR, CALL, STEP), stack((f"{SITE}/tokenslib/words.py", "split"), STEP)))
    assert {site.phase for site in found} == {"Fwd", "Other"}, "a library's call there may be anything"


def test_a_loop_in_a_library_has_the_librarys_lines():
    loop = [Frame(f"{SITE}/trainerlib/loop.py", line, "Trainer.fit") for line in (30, 31, 32, 33)]
    stacks = (
        stack((FETCH, "fetch"), (LOADER, "__next__"), loop[0], STEP),
        stack(LINEAR, CALL, loop[1], STEP),
        stack(ENGINE, loop[2], STEP),
        stack(ADAM, loop[3], STEP),
    )
    found = sites(sampled(10, *stacks))
    assert {(site.location.line, site.phase, str(site.under)) for site in found} == {
        (30, "Data", "train.py:20"), (31, "Fwd", "train.py:20"), (32, "Bwd", "train.py:20"), (33, "Opt", "train.py:20"),
    }  # fmt: skip


def test_a_forked_worker_does_not_have_its_parents_lines():
    waits = stack(
        (f"{STDLIB}/selectors.py", "select"), (f"{STDLIB}/multiprocessing/queues.py", "Queue.get"), WORKER, (LOADER, "__init__"), TRAIN
    )
    makes = stack(SORT, ELASTIC, (FETCH, "fetch"), WORKER, (LOADER, "__init__"), TRAIN)
    main = sampled(10, *[stack(*WAITS, TRAIN)] * 4)
    worker = sampled(20, *[makes] * 3, waits, role="worker", parent=10)
    found = sites(main, worker)
    assert [(site.role, site.phase, str(site.location), site.share) for site in found] == [
        ("main", "Data", "train.py:12", 1.0),
        ("worker", "Data", "augmentlib/transforms.py:7", 0.75),
    ]
    assert found[0].path[-1].function.endswith("_try_get_data"), "what it waits in is no place"


def test_thousands_of_frames_leave_the_leaf_and_the_owners_line():
    one, other = (f"{SITE}/parselib/grammar.py", "rule"), (f"{SITE}/parselib/grammar.py", "term")
    found = frames_of(stack(SORT, *[one, other] * 2000, STEP, *[TRAIN] * 3000), "/owner")
    assert len(found) <= DEEPEST + 1
    assert (found[-1].location.function, str(found[0].location)) == ("sort", "train.py:20")
    assert len(frames_of(stack(SORT, *[one] * 2000, STEP), "/owner")) == 3, "recursion is one frame"
    [site] = sites(sampled(10, *[stack(SORT, *[one, other] * n, STEP) for n in (3, 900, 2000)]))
    assert sorted(place.function for place in site.path) == ["rule", "term"]


def test_generated_code_has_no_line_of_the_owners():
    made = ("<string>", "<lambda>")
    [site] = sites(sampled(10, stack(made, STEP), stack(Frame("", 0, ""), STEP)))
    assert (str(site.location), site.share) == ("train.py:20", 1.0)
    assert sites(sampled(10, stack(made), stack(made, CALL))) == []
    assert cost_sites(seen(watched(10, at(12, "data")))) == (), "without stacks"


def told(*each: Watched):
    window = seen(*each)
    findings, abstained = triage(window)
    assert abstained is None
    return named(findings, cost_sites(window))[0]


def test_a_finding_at_the_line_of_a_loader_names_what_the_library_does_there():
    makes = stack(SORT, ELASTIC, (FETCH, "fetch"), (LOADER, "__next__"), TRAIN)
    finding = told(sampled(10, *[makes] * 90, *[stack(LINEAR, CALL, STEP)] * 10, cpu=1.0, switches=9))
    assert (finding.kind, str(finding.location)) == ("input_cpu", "train.py:12")
    assert finding.summary.endswith("Elastic.__call__ (augmentlib/transforms.py:7) below that line takes 90.0 % of the time.")
    assert finding.evidence[-1].value == "Elastic.__call__ (augmentlib/transforms.py:7)"


def test_a_finding_about_workers_without_own_lines_names_their_library():
    main = sampled(10, *[stack(*WAITS, TRAIN)] * 100, cpu=0.1, switches=9)
    worker = sampled(20, *[stack(ELASTIC, (FETCH, "fetch"), WORKER, TRAIN)] * 100, role="worker", parent=10, cpu=1.0)
    finding = told(main, worker)
    assert (finding.kind, str(finding.location)) == ("input_cpu", "train.py:12")
    assert finding.summary.endswith("Elastic.__call__ (augmentlib/transforms.py:7) below that line takes 100.0 % of the workers' time.")


def test_a_finding_at_the_line_of_a_trainer_names_the_part_of_its_phase():
    saves = stack((f"{SITE}/torch/serialization.py", "save"), (f"{SITE}/trainerlib/saving.py", "Saver.save"), STEP)
    loop = Frame(f"{SITE}/trainerlib/loop.py", 31, "Trainer.fit")
    steps = [stack(LINEAR, CALL, loop, STEP), stack(ADAM, loop, STEP)] * 40
    finding = told(sampled(10, *[saves] * 20, *steps, cpu=1.0, switches=9))
    assert (finding.kind, str(finding.location)) == ("checkpoint", "train.py:20")
    assert "Saver.save (trainerlib/saving.py:7) below that line takes 20.0 % of the time." in finding.summary


def test_one_small_function_of_many_does_not_stand_for_a_finding():
    many = [stack((f"{SITE}/trainerlib/part{n}.py", "work"), (FETCH, "fetch"), (LOADER, "__next__"), TRAIN) for n in range(9)]
    step = Frame(f"{SITE}/trainerlib/loop.py", 31, "Trainer.fit")
    finding = told(sampled(10, *many * 9, *[stack(LINEAR, CALL, step, TRAIN), stack(ADAM, step, TRAIN)] * 9, cpu=1.0, switches=9))
    assert finding.evidence[-1].name == "calls" and "below that line" not in finding.summary


def test_what_stands_at_the_line_itself_names_nothing():
    finding = told(sampled(10, *[stack(ITEM, (FETCH, "fetch"), (LOADER, "__next__"), TRAIN)] * 90, cpu=1.0, switches=9))
    assert finding.kind == "input_cpu" and "below that line" not in finding.summary
    waits = told(
        sampled(10, *[stack(*WAITS, TRAIN)] * 90, cpu=0.1, switches=9),
        sampled(20, *[stack(ITEM, (FETCH, "fetch"), WORKER)] * 90, role="worker", parent=10, cpu=1.0),
    )
    assert waits.kind == "input_cpu" and "below that line" not in waits.summary


def test_hooks_within_backward_are_a_finding_of_their_own():
    hook = stack(Frame("/owner/watch.py", 8, "record"), ENGINE, STEP)
    finding = told(sampled(10, *[hook] * 60, *[stack(LINEAR, CALL, STEP)] * 40, cpu=1.0, switches=9))
    assert (finding.kind, finding.phase, str(finding.location), finding.share) == ("callback", "Bwd", "watch.py:8", 0.6)
    assert told(sampled(10, *[hook] * 5, *[stack(LINEAR, CALL, STEP)] * 95, cpu=1.0, switches=9)).kind == "compute"


def beside(each: Watched) -> int | None:
    return threads.trains_beside(each.pid, each.stacks, each.thread_cpu)


def test_the_thread_that_trains_is_taken_where_the_main_one_does_not():
    each = watched(10, cpu=0.5, threads=3)
    joins = stack((f"{STDLIB}/threading.py", "Thread.join"), TRAIN)
    forward, backward = stack(LINEAR, CALL, STEP), stack(ENGINE, STEP)
    each.stacks = {10: [joins] * 9, 11: [forward] * 9, 12: [forward] * 8 + [backward] * 2}
    assert beside(each) == 12
    each.stacks[10].append(backward)
    assert beside(each) is None, "the main thread trains too"
    each.stacks = {10: [joins] * 9, 11: [joins] * 9, 12: [forward, *[joins] * 9]}
    assert beside(each) is None, "one stack may be torn"
    each.stacks[12].append(forward)
    assert beside(each) is None, "a module beside a main thread that computes no less"
    each.after[12] = Counters("serves", 9.0, 0.0, 0)
    assert beside(each) == 12


def test_a_thread_that_trains_is_not_hung_because_the_main_one_waits_for_it():
    each = sampled(10, *[stack((f"{STDLIB}/threading.py", "Thread.join"), TRAIN)] * 100)
    assert told(each).kind == "hung"
    trains = [stack(LINEAR, CALL, STEP)] * 90 + [stack(ENGINE, STEP)] * 10
    each.stacks[11] = trains
    each.after[11] = Counters("trains", 9.0, 0.0, 500)
    each.beside = beside(each)
    each.doing = tuple(places.place(one) for one in each.main_stacks)
    assert told(each).kind == "compute"


def test_the_answer_has_five_sites_at_most_and_the_terminal_shows_them(monkeypatch, capsys):
    lines = [stack(LINEAR, CALL, Frame("/owner/train.py", line, "main")) for line in range(20, 29)]
    makes = stack(SORT, ELASTIC, (FETCH, "fetch"), (LOADER, "__next__"), TRAIN)
    window = seen(sampled(10, *lines, *[makes] * 60, cpu=1.0, switches=9))
    monkeypatch.setattr(answer, "resolve", lambda pid: window.target)
    monkeypatch.setattr(answer, "watch", lambda *_: window)
    found = answer.diagnose(10, 10.0, lambda *_: None)
    assert isinstance(found, Live) and len(found.sites) == 5
    assert found.findings[0].evidence[-1].name == "calls"
    Console(width=120).print(report.live(found))
    shown = capsys.readouterr().out
    assert "train.py:12 in main" in shown and "Elastic.__call__ (augmentlib/transforms.py:7)" in shown
    document = watching.answer(found)
    assert document["sites"][0]["path"][-1]["function"] == "Elastic.__call__"


# Permission.


def test_stacks_that_were_lost_are_said():
    assert "30 of 40 stacks of process 7" in permission.unread(7, 30, 10).why


@pytest.mark.parametrize(
    ("files", "platform", "uid", "why", "mend"),
    [
        ({"proc/sys/kernel/yama/ptrace_scope": "1\n"}, "linux", 1000, "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0"),
        ({"proc/sys/kernel/yama/ptrace_scope": "2\n"}, "linux", 1000, "ptrace_scope is 2", "sudo trainflash diagnose --pid 7"),
        ({"proc/sys/kernel/yama/ptrace_scope": "3\n"}, "linux", 0, "nobody", "boot"),
        ({"proc/self/status": "CapEff:\t00000000a80425fb\n"}, "linux", 0, "SYS_PTRACE", "--cap-add SYS_PTRACE"),
        ({".dockerenv": ""}, "linux", 1000, "user 1000", "--cap-add SYS_PTRACE"),
        ({}, "darwin", 501, "macOS", "sudo trainflash diagnose --pid 7"),
    ],
)
def test_what_permission_is_lacking_and_the_way_out(tmp_path, files, platform, uid, why, mend):
    found = permission.refused(7, "Permission Denied: Try running again", tree(tmp_path, files), platform, uid)
    assert why in found.why and mend in found.mend


def test_another_refusal_is_said_as_it_is(tmp_path):
    assert "Failed to find python version" in permission.refused(7, "Failed to find python version", tmp_path).why


# Which process.


def program(
    pid: int, parent: int, argv: str, *, torch=False, environ="", name="python", exe="/usr/bin/python3.11", uid=0, children=""
) -> dict[str, str]:
    numbers = f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {pid} 0 0 0 20 0 1 0 777 0 0\n"
    return {
        f"proc/{pid}/stat": numbers,
        f"proc/{pid}/task/{pid}/stat": numbers,
        f"proc/{pid}/task/{pid}/children": children,
        f"proc/{pid}/cmdline": argv.replace(" ", "\0") + "\0",
        f"proc/{pid}/environ": environ,
        f"proc/{pid}/maps": f"7f00-7f01 r-xp 0 08:01 5 {exe}\n"
        + ("7f02-7f03 r-xp 0 08:01 6 /venv/torch/lib/libtorch_cpu.so\n" if torch else ""),
        f"proc/{pid}/status": f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n",
    }


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Builds `/proc` trees; we are root unless a test says otherwise."""
    monkeypatch.setattr("os.geteuid", lambda: 0)

    def make(*programs: dict[str, str]) -> Path:
        root = tree(tmp_path, {"proc/self/stat": "1 (me) R 0"})
        for files in programs:
            tree(root, files)
        return root

    return make


def test_the_ranks_below_a_launcher_that_is_no_python(machine):
    shell = program(5, 1, "bash run.sh", name="bash", exe="/bin/bash", children="6 7")
    ranks = [program(pid, 5, "python train.py", torch=True, environ=f"RANK={pid - 6}\0WORLD_SIZE=2\0") for pid in (6, 7)]
    root = machine(shell, *ranks)
    assert target.resolve(5, root) == target.Target(5, (6, 7), ("process 5 is bash; the ranks below it are watched: 6, 7",))


def test_of_two_trainings_the_busier_is_taken_and_the_other_named(machine):
    shell = program(5, 1, "bash run.sh", name="bash", exe="/bin/bash", children="6 70")
    root = machine(shell, program(6, 5, "python a.py", torch=True), program(70, 5, "python b.py", torch=True))
    found = target.resolve(5, root)
    assert found.roots == (70,)
    assert "not watched: 6" in found.notes[1]


def test_a_worker_below_a_training_is_not_taken_for_it(machine):
    shell = program(5, 1, "bash run.sh", name="bash", exe="/bin/bash", children="6")
    root = machine(shell, program(6, 5, "python a.py", torch=True, children="7"), program(7, 6, "python a.py", torch=True))
    assert target.resolve(5, root).roots == (6,)


def test_a_python_without_torch_is_watched_as_it_is(machine):
    found = target.resolve(6, machine(program(6, 1, "python serve.py")))
    assert found.roots == (6,) and "has not loaded torch" in found.notes[0]


def test_a_python_wrapper_of_a_training_hands_over(machine):
    root = machine(program(5, 1, "python launch.py", children="6"), program(6, 5, "python train.py", torch=True))
    assert target.resolve(5, root).roots == (6,)


def test_a_process_of_somebody_else(machine, monkeypatch):
    root = machine(program(6, 1, "python train.py", torch=True, uid=1001))
    assert target.resolve(6, root).roots == (6,), "root may"
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="belongs to user 1001") as told:
        target.resolve(6, root)
    assert told.value.mend == "sudo trainflash diagnose --pid 6"


# The command line.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--pid", "1", "--", "python", "train.py"], "leave out the command"),
        (["--pid", "1", "--run", "diagnose-001"], "--pid does not go with --run"),
        (["--pid", "1", "--steps", "5", "--warmup", "0"], "--pid does not go with --steps, --warmup"),
        (["--seconds", "5", "--", "python", "train.py"], "--seconds goes with --pid"),
        (["--pid", "many"], "is not a valid integer"),
        (["--pid", "0"], "0 is no process"),
        (["--pid", "-3"], "-3 is no process"),
        (["--pid", "1", "--seconds", "nan"], "no number of seconds"),
    ],
)
def test_a_usage_error_is_one_line_and_code_2(arguments, told, capsys):
    assert main(["diagnose", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_the_help_names_the_options():
    shown = CliRunner().invoke(command.diagnose, ["--help"]).output
    assert {"--pid", "--seconds", "--warmup", "--sample-hz"} <= set(shown.replace(",", " ").split())


def test_secrets_stay_out_of_the_answer(monkeypatch):
    given = {}

    def watch(pid, seconds, progress, clean):
        given["shown"] = clean(("python", "train.py", "--token", "hf_" + "a1B2" * 10))

    monkeypatch.setattr(watching.live, "diagnose", watch)
    watching.watch(1)
    assert "a1B2" not in " ".join(given["shown"])


FLAKY_SPY = """#!/bin/sh
# The real py-spy, but the first recording ends at once without stacks.
if [ "$1" = record ] && [ ! -e "{mark}" ]; then : > "{mark}"; exit 1; fi
exec "{spy}" "$@"
"""


def test_a_recording_that_failed_is_begun_again(tmp_path, monkeypatch):
    spy, mark = tmp_path / "py-spy", tmp_path / "failed"
    spy.write_text(FLAKY_SPY.format(mark=mark, spy=find_spy()))
    spy.chmod(0o755)
    monkeypatch.setattr(watching_window, "find_spy", lambda: str(spy))
    program = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])
    try:
        found = watching_window.watch(target.resolve(program.pid), 6.0, lambda label, done, total: None)
    finally:
        program.kill()
        program.wait()
    assert mark.exists()
    assert any(each.main_stacks for each in found.watched)
