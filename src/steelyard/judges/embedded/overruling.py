"""Contradictions that stand whatever the networks say: these take a claim for said when all of its words are there.

A rule belongs here if it is right nearly always where it speaks; it is tried on development rows first. What is
merely a hint is a clash (`clashes.py`): it becomes a feature, and trees and networks weigh it.
"""

from __future__ import annotations

from steelyard.judges.embedded.comparing import worked_out
from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.features import Alignment
from steelyard.judges.embedded.fits import short_clauses, tokens
from steelyard.judges.embedded.limits import bounded
from steelyard.judges.embedded.roles import crossed, denied_there, exchanged
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.turning import reversed_roles

# Each takes a clause of the claim and the texts it may be about; the first that sees something is told.
RULES = (crossed, reversed_roles, exchanged, denied_there, bounded, worked_out)
# A shorter clause says too little by itself.
SHORTEST_PART = 4


def overruled(claim: str, found: Alignment, source: Source) -> Clash | None:
    """What the span and its neighbours contradict in a clause of the claim by who or what stands where."""
    at = source.spans.index(found.span)
    near = [span.text for span in source.spans[max(0, at - 1) : at + 2] if span.passage == found.span.passage]
    parts = [part for part in short_clauses(claim) if len(tokens(part)) >= SHORTEST_PART] or [claim]
    seen = next(filter(None, (rule(part, near) for part in parts for rule in RULES)), None)
    # What is denied can often be named in fewer words.
    return next((clash for clash in found.clashes if seen and clash.kind == seen.kind == "negation"), seen)
