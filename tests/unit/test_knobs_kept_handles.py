"""What is kept open, kept at work or taken away: real programs then give the same, in worker processes and threads too.

Most of what is refused stands in `knob_pitfalls.yaml` and `knob_guards.yaml`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from knob_runs import applied, candidate_here

from trainflash.errors import UsageError

HEAD = '''"""Reads."""

import contextlib
import io
import sqlite3
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

HERE = Path(__file__).parent
with zipfile.ZipFile(HERE / "all.zip", "w") as made:
    for number in range(24):
        made.writestr(f"{number}.txt", str(number * 3))
with tarfile.open(HERE / "all.tar", "w") as made:
    for number in range(24):
        member = tarfile.TarInfo(f"{number}.txt")
        member.size = len(str(number))
        made.addfile(member, io.BytesIO(str(number).encode()))
np.savez(HERE / "all.npz", **{f"row{number}": np.arange(4) + number for number in range(24)})
np.arange(96, dtype=np.int64).tofile(HERE / "all.bin")
with contextlib.closing(sqlite3.connect(HERE / "all.db")) as made:
    made.execute("create table if not exists rows (number integer, value real)")
    made.execute("delete from rows")
    made.executemany("insert into rows values (?, ?)", [(number, number / 7) for number in range(24)])
    made.commit()


class Rows(Dataset):
    def __init__(self, root):
        self.root, self.name = root, "all"

    def __len__(self):
        return 24

    def __getitem__(self, at):
        return self.read(at)
'''
TAIL = """

if __name__ == "__main__":
    rows = Rows(HERE)
    print([float(rows[at]) for at in (3, 1, 3, 23)])
    for workers in (0, 2):
        print(torch.cat(list(DataLoader(rows, batch_size=5, num_workers=workers))).tolist())
    with ThreadPoolExecutor(3) as pool:
        print([float(value) for value in pool.map(rows.__getitem__, range(24))])
"""
FORMS = {
    "a zip archive": """
    def read(self, at):
        with zipfile.ZipFile(self.root / "all.zip") as archive:  # here
            with archive.open(f"{at}.txt") as member:
                return torch.tensor(float(member.read()))
""",
    "a tar archive, read further down": """
    def read(self, at):
        with tarfile.open(self.root / f"{self.name}.tar", mode="r") as archive:
            member = archive.extractfile(f"{at}.txt")
            return torch.tensor(float(member.read()))  # here
""",
    "an archive of arrays": """
    def read(self, at):
        with np.load(self.root / "all.npz") as arrays:
            row = arrays[f"row{at}"]  # here
        return torch.from_numpy(row).sum().float()
""",
    "a database, closed by hand": """
    def read(self, at):
        connection = sqlite3.connect(self.root / "all.db")  # here
        row = connection.execute("SELECT value FROM rows WHERE number = ?", (int(at),)).fetchone()
        connection.close()
        return torch.tensor(row[0], dtype=torch.float32)
""",
    "a database, closing": """
    def read(self, at):
        return torch.tensor(self.value(at), dtype=torch.float32)  # here

    def value(self, at):
        with contextlib.closing(sqlite3.connect(str(self.root / "all.db"))) as connection:
            return connection.execute("select value from rows where number = ?", (int(at),)).fetchone()[0]
""",
    "records at their places": """
    def read(self, at):
        with open(self.root / "all.bin", "rb") as file:  # here
            file.seek(32 * int(at))
            data = file.read(32)
        return torch.tensor(np.frombuffer(data, dtype=np.int64).sum(), dtype=torch.float32)
""",
}


def shown(folder) -> str:
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


QUICK = ("a zip archive", "records at their places")


@pytest.mark.parametrize("form", [form if form in QUICK else pytest.param(form, marks=pytest.mark.full) for form in FORMS])
def test_what_is_read_stays_the_same(tmp_path, form):
    source = HEAD + FORMS[form] + TAIL
    candidate = candidate_here(tmp_path, "kept_handle", source)
    before = shown(tmp_path)
    after = applied(tmp_path, candidate.diff)["train.py"]
    assert "lru_cache" in after and "_opened(" in after
    (tmp_path / "train.py").write_text(after, encoding="utf-8")
    assert shown(tmp_path) == before and before.count("[") == 4
    with pytest.raises(UsageError):
        candidate_here(tmp_path, "kept_handle", after if "# here" in after else after + "# here\n")


REFUSED = {
    "read from the beginning": ('with open(path, "rb") as f:  # here\n        return f.read()', "read from its beginning"),
    "written": ('with zipfile.ZipFile(path, "a") as f:  # here\n        f.writestr("a", b"1")', "not opened for reading only"),
    "a query that changes": (
        'with closing(sqlite3.connect(path)) as f:  # here\n        return f.execute("UPDATE rows SET value = 1").fetchone()',
        "may be kept by it, or keep it",
    ),
    "handed on": ('with h5py.File(path, "r") as f:  # here\n        keep = f\n    return keep', "may be kept by it, or keep it"),
    "a generator": ('with h5py.File(path, "r") as f:  # here\n        yield f["x"][0]', "other work may go on"),
    "a mode that is computed": ("with h5py.File(path, mode) as f:  # here\n        return f['x'][0]", "not opened for reading only"),
    "never closed": ('f = h5py.File(path, "r")  # here\n    return f["x"][0]', "no file is opened and closed again"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_handle_that_counts_is_not_kept(tmp_path, form):
    body, reason = REFUSED[form]
    source = f"import sqlite3\nimport zipfile\nfrom contextlib import closing\n\nimport h5py\n\n\ndef read(path, mode):\n    {body}\n"
    with pytest.raises(UsageError, match=reason):
        candidate_here(tmp_path, "kept_handle", source)


CHANGING = """
import os
import zipfile

import numpy as np


def total(path):
    with np.load(path) as arrays:
        return float(arrays["a"].sum())  # here


def main():
    for round in range(4):
        os.makedirs(f"part{round % 2}", exist_ok=True)
        os.chdir(f"part{round % 2}")
        name = "all.npz"
        np.savez(name, a=np.arange(round + 1))
        print(total("all.npz"), total("all.npz"))
        os.chdir("..")


if __name__ == "__main__":
    main()
"""


def test_a_file_that_changes_is_opened_again(tmp_path):
    candidate = candidate_here(tmp_path, "kept_handle", CHANGING)
    before = shown(tmp_path)
    after = applied(tmp_path, candidate.diff)["train.py"]
    (tmp_path / "train.py").write_text(after, encoding="utf-8")
    assert shown(tmp_path) == before == "0.0 0.0\n1.0 1.0\n3.0 3.0\n6.0 6.0\n"


def test_what_opens_stands_apart_from_what_is_around_it(tmp_path):
    source = 'import zipfile\ndef read(path):\n    with zipfile.ZipFile(path) as f:  # here\n        return f.read("a")\n'
    after = applied(tmp_path, candidate_here(tmp_path, "kept_handle", source).diff)["train.py"]
    assert after == APART


APART = """import contextlib
import functools
import os
import threading
import zipfile


@functools.lru_cache(maxsize=32)
def _kept(process, thread, number, changed, size, path, *args, **options):
    return zipfile.ZipFile(path, *args, **options)


def _opened(path, *args, **options):
    found = os.stat(path)
    key = (os.getpid(), threading.get_ident(), found.st_ino, found.st_mtime_ns, found.st_size)
    return _kept(*key, path, *args, **options)


def read(path):
    with contextlib.nullcontext(_opened(path)) as f:  # here
        return f.read("a")
"""

POOLED = """
import multiprocessing
from concurrent.futures import ThreadPoolExecutor


def square(number):
    return number * number


def squares(numbers):
{}


if __name__ == "__main__":
    for start in range(3):
        print(squares(range(start, start + 5)))
"""
POOLS = {
    "processes": """
    pool = multiprocessing.get_context("fork").Pool(2)  # here
    found = list(pool.imap(square, numbers))
    pool.close(); pool.join()
    return found""",
    "threads whose results are asked for": """
    with ThreadPoolExecutor(3) as pool:  # here
        waiting = [pool.submit(square, number) for number in numbers]
    return [each.result() for each in waiting]""",
}


@pytest.mark.parametrize("form", POOLS)
def test_kept_workers_give_the_same(tmp_path, form):
    candidate = candidate_here(tmp_path, "kept_pool", POOLED.format(POOLS[form]))
    before = shown(tmp_path)
    after = applied(tmp_path, candidate.diff)["train.py"]
    (tmp_path / "train.py").write_text(after, encoding="utf-8")
    assert "cache(" in after and shown(tmp_path) == before and before.count("[") == 3


PROFILED = """
import cProfile
import io
import pstats


def fit(rank):
    watch = cProfile.Profile(); watch.enable()  # here
    try:
        loss = sum(number * number for number in range(9))
    finally:
        watch.disable()
        watch.dump_stats("found.prof")
    if rank == 0:
        text = io.StringIO()
        found = pstats.Stats(watch, stream=text).sort_stats("cumtime")
        found.print_stats(3); print(text.getvalue())
    return loss


print("loss", fit(0))
"""


def test_without_its_profiler_a_program_does_the_same(tmp_path):
    candidate = candidate_here(tmp_path, "python_profiler_off", PROFILED)
    before = shown(tmp_path)
    (tmp_path / "train.py").write_text(applied(tmp_path, candidate.diff)["train.py"], encoding="utf-8")
    assert shown(tmp_path) == before.splitlines()[-1] + "\n" == "loss 204\n"
