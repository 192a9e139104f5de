"""Cost sites in every report: each figure stands there once, and the picture of the call tree is right, small and searchable."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
import report_scenarios as scenarios
import report_sites as shown
from rich.console import Console, RenderableType

from trainflash import report
from trainflash.knobs.project import Project
from trainflash.report import icicles, sites
from trainflash.schema import CallNode, CallTree, Location, Plan, dump_yaml, from_plain, to_plain
from trainflash.workflow import optimizing
from trainflash.workflow.choosing import Choice

DIAGNOSIS = replace(scenarios.BEFORE, sites=shown.SITES)
HOSTILE = '<script>alert(1)</script> [bold]x[/bold] \x1b[31mred\u202e "quoted" & more'


def _print(renderable: RenderableType, width: int = 140) -> str:
    out = StringIO()
    Console(file=out, width=width, legacy_windows=False).print(renderable)
    return out.getvalue()


def _page(before=DIAGNOSIS, after=None, calls=None, plan=None) -> str:
    return report.html(replace(scenarios.NOTHING, before=before, after=after), (), plan, None, calls)


def test_the_terminal_says_what_each_line_costs_and_what_it_is() -> None:
    text = _print(report.diagnosis(DIAGNOSIS), 200)
    for expected in (
        "68.2 %   Fwd       train.py:29 in Module.training_step",
        "a metric: Metric._copy_state_dict.<listcomp> (torchmetrics/metric.py:968)",
        "16.0 %   Fwd+Bwd   train.py:27", "linear 3×: 1.26 ms a step, 0.420 ms at least on this machine", "8.7 %   Opt ",
        "in the loop of train.py:60", "91.0 %   workers", "workers: share of the workers' own time",
    ):  # fmt: skip
        assert expected in text
    assert text.index("Other") < text.index("Where the time goes") < text.index("1. input_cpu")
    assert "relu" not in text


def test_without_sites_nothing_is_said_of_them() -> None:
    for text in (_print(report.diagnosis(scenarios.BEFORE)), _page(scenarios.BEFORE)):
        assert "metric" not in text.lower().replace("a metric is written", "") and "Which lines" not in text
    assert "Where the time goes" not in _print(report.diagnosis(scenarios.BEFORE))


@pytest.mark.parametrize("width", [40, 60, 80, 96, 140])
def test_the_lines_fit_their_terminal(width: int) -> None:
    text = _print(report.diagnosis(DIAGNOSIS), width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert ("Fwd+Bwd" in text) is (width >= 60)
    assert ("Hottest below it" in text) is (width >= 96)
    assert "68.2 %" in text


def test_a_line_that_costs_backward_alone_is_of_that_phase() -> None:
    site = replace(shown.SITES[1], forward=0.0, backward=0.16)
    assert (sites.phase(site), sites.main_phase(site)) == ("Bwd", "Bwd")
    assert sites.main_phase(shown.SITES[1]) == "Fwd"
    assert [sites.manner(replace(site, called_back=kind)) for kind in ("", "hook", "engine")] == [
        "",
        "a hook",
        "called beside the nodes of the graph",
    ]


def test_an_operator_that_says_nothing_about_its_line_is_left_out() -> None:
    site = shown.SITES[1]
    first = site.operators[0]
    assert sites.operator(replace(site, operators=(replace(first, share=0.03),))) == ""
    assert sites.operator(replace(site, operators=(replace(first, floor_ms=2.0, calls=1.0),))) == "linear: 1.26 ms a step"
    assert sites.operator(replace(site, operators=(replace(first, floor_ms=None, calls=2.5),))) == "linear 2.50×: 1.26 ms a step"
    assert sites.operator(replace(site, operators=())) == ""


def test_briefs_hold_the_sites_and_show_them_in_short() -> None:
    plan = replace(scenarios.PLAN, briefs=(replace(scenarios.PLAN.briefs[0], sites=shown.SITES),))
    short = "68.2 % train.py:29 (a metric); 16.0 % train.py:27; 8.7 % train.py:48"
    assert short in _page(plan=plan)
    assert "where the time goes" not in _print(report.plan(plan)).lower(), "the plan names the task, and its command shows it"
    assert from_plain(Plan, to_plain(plan)) == plan
    assert "train.py" in dump_yaml(plan) and "&id" not in dump_yaml(plan)


def test_each_brief_is_given_the_sites_of_its_diagnosis(tmp_path) -> None:
    found = replace(DIAGNOSIS, findings=())
    told = optimizing._briefs(Project(tmp_path, scenarios.COMMAND), found, scenarios.PLAN.briefs * 2, (), Choice((), (), ()))
    for brief in told:
        assert [site.location for site in brief.sites] == [site.location for site in shown.SITES]
        assert brief.sites[0].path == (shown.COPIES,)
        assert [each.name for each in brief.sites[1].operators] == ["linear"]


def test_the_page_shows_lines_and_calls_of_both_runs() -> None:
    page = _page(after=replace(scenarios.AFTER, sites=shown.SITES[1:3]), calls=report.Calls(shown.TREE, shown.TREE))
    assert page.count("The costliest lines") == 2
    assert re.findall('<div class="search" role="search" aria-label="([^"]*)" hidden>', page) == ["Call tree before", "Call tree after"]
    assert len(re.findall(r'id="find-(before|after)"', page)) == 2
    assert "share of the workers&#39; own time" in page
    assert len(re.findall(r"<script", page)) == 1


def test_only_our_script_runs_and_only_with_a_picture() -> None:
    page = _page(calls=report.Calls(shown.TREE))
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"" in page
    for without in (_page(), _page(calls=report.Calls(CallTree("diagnose-003", ())))):
        assert "script" not in without


def test_boxes_lie_inside_those_above_them_and_frames_that_hand_on_have_none() -> None:
    boxes = icicles.boxes(shown.TREE)
    assert [box.node.location.function for box in boxes[:4]] == [
        "Fwd",
        shown.STEP,
        "Metric.forward",
        "Metric._copy_state_dict.<locals>.<listcomp>",
    ]
    above = {}
    for box in boxes:
        if box.depth:
            outer = above[box.depth - 1]
            assert outer.left - 1e-9 <= box.left and box.left + box.share <= outer.left + outer.share + 1e-9
        above[box.depth] = box
    through = [each.location.function for each in boxes[2].through]
    assert through == ["Module._wrapped_call_impl", "Module._call_impl"]
    assert boxes[0].left == 0.0 and boxes[0].share == 0.85, "the largest phase comes first"


def test_the_owner_s_lines_always_have_a_box() -> None:
    chain = shown.node(Location("a.py", 1, "f"), 0.5, shown.node(Location("b.py", 2, "g"), 0.5))
    assert len(icicles.boxes(CallTree("r", (shown.phase("Data", 0.5, chain),)))) == 3


def test_each_box_says_place_share_and_way() -> None:
    drawn = icicles.picture(icicles.boxes(shown.TREE), "calls")
    titles = re.findall(r'<g class="box" data-depth="(\d+)" data-share="([\d.]+)"><title>([^<]*)</title>', drawn)
    assert len(titles) == len(icicles.boxes(shown.TREE))
    assert titles[0] == ("0", "0.85000", "Fwd+Bwd\n85.0 % of the time")
    assert titles[2][2].splitlines()[:2] == ["torchmetrics/metric.py:315 in Metric.forward", "67.0 % of the time, libraries"]
    assert titles[2][2].splitlines()[2].startswith("through torch/nn/modules/module.py:1776 in ")
    assert "train.py:29 in Module.training_step, 68.2 %</text>" in drawn
    assert 'role="img" aria-label="Call tree' in drawn and "train.py:29 in Module.training_step 68.2 %" in drawn
    assert "var(--kind-own)" in drawn and "var(--phase-fwd)" in drawn


def test_the_text_version_has_the_same_lines() -> None:
    lines = icicles.text(icicles.boxes(shown.TREE)).splitlines()
    assert lines[0].strip() == "85.0 %  Fwd+Bwd"
    assert lines[1] == "  68.2 %    train.py:29 in Module.training_step"


def test_a_huge_tree_stays_small() -> None:
    boxes = icicles.boxes(shown.deep(40, 2))
    assert max(box.depth for box in boxes) < icicles.DEEPEST
    deepest = icicles.boxes(shown.deep(40, 1))
    assert max(box.depth for box in deepest) == icicles.DEEPEST - 1
    both = [icicles.picture(boxes, "calls", size) for size in ("wide", "narrow")]
    assert 100 < both[0].count('class="box"') <= 300 and both[1].count('class="box"') <= 140
    assert sum(map(len, both)) < 300_000


def test_of_many_equal_boxes_none_hangs_in_the_air() -> None:
    def chain(n: int, depth: int) -> CallNode:
        return shown.node(Location(f"a{n}.py", depth + 1, "f"), 1 / 60, *([chain(n, depth + 1)] if depth < 14 else []))

    boxes = icicles.boxes(CallTree("r", (shown.phase("Fwd", 1.0, *(chain(n, 0) for n in range(60))),)))
    drawn = icicles.picture(boxes, "calls")
    depths = [int(depth) for depth in re.findall(r'data-depth="(\d+)"', drawn)]
    assert len(depths) == 300
    assert all(below <= above + 1 for above, below in pairwise(depths))


def test_names_of_others_are_text_in_the_picture() -> None:
    tree = CallTree("r", (shown.phase("Fwd", 1.0, shown.node(Location(f"{HOSTILE}.py", 1, HOSTILE), 1.0)),))
    page = _page(
        replace(DIAGNOSIS, sites=(replace(shown.SITES[0], location=tree.roots[0].children[0].location),)), calls=report.Calls(tree)
    )
    assert "<script>alert" not in page and "\u202e" not in page and "\x1b" not in page
    assert page.count("<script") == 1
