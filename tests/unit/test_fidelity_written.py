"""Files that a program writes: how often is told from chance, from buffers that a stop loses, and from names of a run's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from training_records import record

from trainflash.fidelity import compare, printed, written
from trainflash.fidelity.reuse import Run

RECORDS = "".join(f'{{"step": {n}, "loss": 0.{1000 + n}}}\n' for n in range(300))
FEW = "".join(RECORDS.splitlines(keepends=True)[::100])


class View:
    """A view whose writable layer is a folder, as a mount gives it."""

    protection, layer = "mount", ""

    def __init__(self, folder: Path) -> None:
        self.uppers = ((str(folder), "/project"),)

    def written(self) -> tuple[str, ...]:
        return ()


class Box:
    repository = "/project"


def run(folder: Path, name: str, files: dict[str, str | bytes], *, whole: bool = True) -> Run:
    made, layer = folder / name, folder / f"{name}-layer"
    made.mkdir()
    for path, data in files.items():
        (layer / path).parent.mkdir(parents=True, exist_ok=True)
        (layer / path).write_bytes(data.encode() if isinstance(data, str) else data)
    (made / "output.log").write_text("")
    written.keep(View(layer), Box(), made)
    return Run(replace(record(), whole=whole), 1.0, made / "output.log", None)


def judged(folder: Path, old: dict, new: dict, *, again: dict | None = None, whole: bool = True):
    asked = []

    def more(name: str) -> Run:
        asked.append(name)
        return run(folder, name, old if again is None else again, whole=whole)

    found = written.judge(compare(record(), record()), run(folder, "old", old, whole=whole), run(folder, "new", new, whole=whole), run=more)
    return found, asked


BROKEN = {
    "rarer records": ({"grads.jsonl": RECORDS}, {"grads.jsonl": FEW}, "grads.jsonl: 300 records → 3"),
    "no file": ({"out/log.csv": RECORDS}, {}, "out/log.csv: 300 records → 0"),
    "rarer pictures": ({f"maps/{n}.png": b"\0" * 99 for n in range(8)}, {"maps/7.png": b"\0" * 99}, "maps/#.png: 8 files → 1"),
    "a shorter history": ({"history.json": "[0.1, 0.2, 0.3]"}, {"history.json": "[0.3]"}, "history.json: 6 records → 2"),
    "less in one file": ({"events.tfevents.1": b"\0" * 5000}, {"events.tfevents.2": b"\0" * 500}, "events.tfevents.#: 5,000 bytes → 500"),
}
HONEST = {
    "the same": ({"a.jsonl": RECORDS}, {"a.jsonl": RECORDS}),
    "under the day's own name": ({"run-20261201_1/a.csv": RECORDS}, {"run-20261202_7/a.csv": RECORDS}),
    "a cache beside it": ({"a.csv": RECORDS}, {"a.csv": RECORDS, "cache/x.npy": b"\0" * 4000}),
    "a little more": ({"plot.png": b"\0" * 1000}, {"plot.png": b"\0" * 1100}),
    "no profiler": ({"a.csv": RECORDS, "host.pt.trace.json": RECORDS}, {"a.csv": RECORDS}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_written_more_rarely_is_another_cadence(tmp_path, name):
    old, new, said = BROKEN[name]
    found, asked = judged(tmp_path, old, new)
    assert (found.verdict, found.changed, asked) == ("changed", ("cadence",), ["rerun"])
    assert found.reasons == (f"written records: {said}",)


@pytest.mark.parametrize("name", HONEST)
def test_what_is_written_as_often_costs_no_further_run(tmp_path, name):
    found, asked = judged(tmp_path, *HONEST[name])
    assert (found.verdict, asked) == ("same", [])
    assert next(check for check in found.checks if check.name == written.CHECK).ok


def test_what_the_baseline_writes_as_it_comes_is_chance(tmp_path):
    found, asked = judged(tmp_path, {"a.csv": RECORDS, "every_second.csv": RECORDS}, {"a.csv": RECORDS, "every_second.csv": FEW},
                          again={"a.csv": RECORDS, "every_second.csv": FEW})  # fmt: skip
    assert (found.verdict, found.changed, asked) == ("same", (), ["rerun"])


def test_a_stop_loses_what_buffers_hold_and_no_more(tmp_path):
    early = {"a.jsonl": RECORDS[:9000]}
    assert judged(tmp_path / "near", early, {"a.jsonl": ""}, whole=False)[0].verdict == "same"
    found, _ = judged(tmp_path / "far", {"a.jsonl": RECORDS * 20}, {"a.jsonl": FEW * 20}, whole=False)
    assert found.changed == ("cadence",) and "updates" in found.reasons[0]


@pytest.fixture(autouse=True)
def folders(tmp_path):
    for name in ("near", "far"):
        (tmp_path / name).mkdir()


def test_other_numbers_in_a_file_are_another_evaluation_if_weights_move_them(tmp_path):
    old, other = ({"runs/metrics.csv": f"epoch,accuracy\n1,{value}\n"} for value in ("0.8125", "0.9375"))
    runs = {"rerun": old, "nudged-bfloat16": {"runs/metrics.csv": "epoch,accuracy\n1,0.8281\n"}}
    found = printed.judge(
        compare(record(), record()), run(tmp_path, "old", old), run(tmp_path, "new", other), whole=True,
        run=lambda name: run(tmp_path, name, runs[name]),
    )  # fmt: skip
    assert found.changed == ("evaluation",) and "metrics.csv: 1,0.8125 → 0.9375" in found.reasons[0].replace("…", "1")


def test_a_run_that_nobody_looked_at_tells_nothing(tmp_path):
    old, new = run(tmp_path, "old", {"a.csv": RECORDS}), run(tmp_path, "new", {})
    (new.log.parent / written.FOLDER / "listing.json").unlink()
    found = compare(record(), record())
    assert written.judge(found, old, new, run=lambda _: None) == found
