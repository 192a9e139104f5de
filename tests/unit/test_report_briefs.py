"""A brief as a page: whole, with its code as it is, and nothing in it that ends a fence or counts as markup of a terminal."""

from __future__ import annotations

import re

from trainflash import report
from trainflash.cli.output import Output
from trainflash.schema import Brief, Ceiling, Evidence, Excerpt, Location, Operand, Quoted, Site, SiteOperator

OPERATOR = SiteOperator(
    "pow",
    128.0,
    2.5,
    16.0,
    0.4,
    (Operand((128, 8), "float32", requires_grad=True),),
    (Operand((128, 8), "float32", "strided"),),
    (("1", "2"),),
    0.1,
)
BRIEF = Brief(
    finding="slow_operator",
    location=Location("train.py", 16, "spread"),
    summary="a loop over rows",
    code="> 16  found.append(rows[i] - rows)  # ```",
    evidence=(Evidence("mean operator", 2.96, "µs"),),
    ceiling=Ceiling(2.5, "measured"),
    keep_the_same="the same samples",
    judged_by="as any experiment",
    phase="Fwd",
    share=0.6,
    try_with="trainflash optimize try --patch FILE -- CMD",
    tried=("memoize_function: not pure",),
    read_rarely=("`rank` is read rarely",),
    sites=(
        Site(
            "main",
            "Fwd",
            Location("train.py", 16),
            0.6,
            0.5,
            0.6,
            operators=(OPERATOR,),
            early_ms=1.0,
            late_ms=9.0,
            callers=(Location("fit.py", 70, "fit"),),
        ),
    ),
    patterns=(Quoted("rows", "all rows at once", "a loop", "a = [x for x in xs]", "a = xs + 1", "the same sums", ("memory",)),),
    calls=(Excerpt(Location("loop.py", 3), "> 3  spread(x)"),),
    agreed=("numerics", "order"),
    refused="loss: update 3: 0.5 instead of 0.25",
    refused_diff="-a\n+b\n",
    answer="a small edit",
)


def test_all_of_a_brief_stands_on_its_page():
    page = report.brief(BRIEF)
    assert re.findall(r"^## (.*)$", page, re.M) == [
        "Your last answer was refused", "What costs time", "The code", "What is read rarely", "What must stay the same",
        "A pattern that may fit: all rows at once", "What was tried, and what came of it", "How it is judged",
    ]  # fmt: skip
    for part in (
        "loss: update 3: 0.5 instead of 0.25", "+b", "60.0 % of the steady wall time, phase Fwd", "2.50× faster", "a replay without it",
        "float32[128, 8] on cpu with gradient", "float32[128, 8] strided", "argument 1=2", "128 calls a step", "in the last", "loop.py:3",
        "called by `fit` (fit.py:70)",
        "these changes in kind: order. Other rounding, within", "memoize_function: not pure", "a = xs + 1", "- memory",
        "An answer is a small edit.",
    ):  # fmt: skip
        assert part in page, part
    assert "````\n> 16  found.append(rows[i] - rows)  # ```\n````" in page, "a fence that the code cannot end"


def test_without_agreements_a_brief_says_so_and_without_a_refusal_nothing_of_it():
    page = report.brief(Brief("host_code", None, "x", "", (), None, "the same", "pairs"))
    assert "agreed to no change in kind" in page and "equal to the last bit" in page and "refused" not in page.split("Other rounding")[0]


def test_a_text_is_printed_as_it_is(capsys):
    Output(False).answer({}, "rows[i] - rows [bold]x[/bold] 12")
    assert capsys.readouterr().out == "rows[i] - rows [bold]x[/bold] 12\n"
