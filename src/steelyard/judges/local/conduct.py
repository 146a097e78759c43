"""Criteria that no rule can decide (tone, style, role), put to the model; what it is not sure of stays open."""

from __future__ import annotations

from steelyard.judges.local.blend import conduct_limits
from steelyard.judges.local.reading import Model, language
from steelyard.judges.local.server import label_shares
from steelyard.judges.local.template import template
from steelyard.records import Numbered
from steelyard.tasks import ComplianceData, ComplianceReply, ComplianceVerdict

# In characters: what a small model can hold of a long answer together with the question about it.
LONGEST_ANSWER = 3000
LONGEST_PROMPT = 600


def settled(data: ComplianceData, reply: ComplianceReply, model: Model) -> ComplianceReply:
    """The reply with labels for those open criteria that the model is sure about."""
    doubts = {doubt.id for doubt in reply.unsure if doubt.items == "criteria"}
    open_ = [item for item in data.criteria if item.id in doubts]
    if not open_ or len(data.answer) > LONGEST_ANSWER:
        return reply
    with model.turn():
        found = [verdict for item in open_ if (verdict := _verdict(item, data, model))]
    decided = {verdict.id for verdict in found}
    return reply.model_copy(
        update={
            "criteria": [*reply.criteria, *found],
            "unsure": [doubt for doubt in reply.unsure if doubt.id not in decided or doubt.items != "criteria"],
        }
    )


def _verdict(item: Numbered, data: ComplianceData, model: Model) -> ComplianceVerdict | None:
    content, bar, _ = item.text.rpartition(" | ")
    criterion = content if bar else item.text
    spoken = language(criterion)
    asked = template("compliance", spoken)
    values = {"prompt": data.prompt[:LONGEST_PROMPT], "answer": data.answer, "criterion": criterion}
    first = model.first_token(asked.messages(values))
    shares = label_shares(first, asked.labels) if first else None
    if shares is None:
        return None
    limits, share = conduct_limits()[spoken], shares[0]
    if limits.no < share < limits.yes:
        return None
    met = share >= limits.yes
    percent = round(100 * share)
    if spoken == "zh":
        reason = f"模型认为{'做到了' if met else '没有做到'}（把握{percent if met else 100 - percent}%）"
    else:
        reason = f"the model finds it {'met' if met else 'not met'} ({percent if met else 100 - percent} % sure)"
    return ComplianceVerdict(id=item.id, reason=reason, complies="fully" if met else "no")
