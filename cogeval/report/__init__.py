"""What a person reads of a run: its summary in numbers, tables for a terminal, figures.

Importing the package stays cheap: `cogeval.report.figures` (matplotlib) and `cogeval.report.tables`
(rich) are imported by whoever shows something.
"""

from cogeval.report.rows import AgentIdentity, DecisionTimes, FaultReason, SeatRows
from cogeval.report.summary import FALLBACK_WARNING, AgentSummary, RunSummary, summarise

__all__ = [
    "FALLBACK_WARNING",
    "AgentIdentity",
    "AgentSummary",
    "DecisionTimes",
    "FaultReason",
    "RunSummary",
    "SeatRows",
    "summarise",
]
