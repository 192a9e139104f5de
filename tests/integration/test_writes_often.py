"""Where a program writes again and again the probe counts, and does not read what is written."""

from __future__ import annotations

import pytest
from probed import PROGRAMS, probed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return probed(tmp_path_factory.mktemp("often"), "writes_often.py", capture="diagnose", SAMPLE_HZ="0")


def test_what_is_pickled_and_inserted_is_not_read_each_time(run):
    assert run.returncode == 0, run.output
    asked, watched, alone = map(float, run.output.split())
    assert asked <= 30  # of 1,600 pickles
    assert watched <= 5 * alone  # written out as text the images cost 50 times as much


def test_the_places_are_known_all_the_same(run):
    lines = {place.location.line for place in run.rank.written if place.often}
    source = (PROGRAMS / "writes_often.py").read_text().splitlines()
    assert {"pickle.dumps(item)", "watched.commit()"} <= {source[line - 1].strip() for line in lines}


def test_a_file_that_was_opened_ahead_of_the_training_is_a_log_while_it_stays_open(run):
    source = (PROGRAMS / "writes_often.py").read_text()
    opened = {number for number, row in enumerate(source.splitlines(), 1) if "open(" in row}
    (log,) = [place.location.line for place in run.rank.written if place.location.line in opened]
    assert "a log that stays open" in source.splitlines()[log - 1]
