"""`Summary` → findings: signals, thresholds, one literal tuple of rules, a ranking, and an explanation of each kind of finding."""

from trainflash.diagnosis.explanations import EXPLANATIONS, Explanation, explain
from trainflash.diagnosis.ranking import diagnose
from trainflash.diagnosis.thresholds import DEFAULT, Thresholds

__all__ = ["DEFAULT", "EXPLANATIONS", "Explanation", "Thresholds", "diagnose", "explain"]
