"""Is the candidate faster? Paired, interleaved starts of both programs until the rule of `stats` has a verdict."""

from trainflash.bench.comparison import Question, asked_before, compare, cost, course_of, forget_after, judge_starts
from trainflash.bench.costs import OwnersRun, with_costs
from trainflash.bench.paced import STARTS_TO_AFFORD

__all__ = [
    "STARTS_TO_AFFORD",
    "OwnersRun",
    "Question",
    "asked_before",
    "compare",
    "cost",
    "course_of",
    "forget_after",
    "judge_starts",
    "with_costs",
]
