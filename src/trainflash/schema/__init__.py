"""The artefacts between the stages. Each is a frozen dataclass with a version; see `documents` for the rules of the files."""

from trainflash.schema.documents import (
    Document, dump_json, dump_yaml, from_plain, read_document, to_plain, write_atomically, write_document,
)
from trainflash.schema.findings import KINDS, Brief, Candidate, Ceiling, Change, Diagnosis, Evidence, Finding, Kind, Plan, Refusal
from trainflash.schema.runs import (
    PHASES, Activity, Command, LineCost, LoaderFacts, Location, PhaseStat, Protection, RepeatedWork, RunRecord, Runs, Sandbox,
    Setting, Side, Spread, Start, Summary, Threads,
)
from trainflash.schema.verdicts import Approval, Check, Experiment, Fidelity, LogEntry, PhaseShare, SpeedVerdict, Speedup, Verdict

__all__ = [
    "KINDS", "PHASES", "Activity", "Approval", "Brief", "Candidate", "Ceiling", "Change", "Check", "Command", "Diagnosis",
    "Document", "Evidence", "Experiment", "Fidelity", "Finding", "Kind", "LineCost", "LoaderFacts", "Location", "LogEntry",
    "PhaseShare", "PhaseStat", "Plan", "Protection", "Refusal", "RepeatedWork", "RunRecord", "Runs", "Sandbox", "Setting", "Side",
    "SpeedVerdict", "Speedup", "Spread", "Start", "Summary", "Threads", "Verdict", "dump_json", "dump_yaml", "from_plain",
    "read_document", "to_plain", "write_atomically", "write_document",
]
