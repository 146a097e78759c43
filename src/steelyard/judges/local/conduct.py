"""Criteria that the embedded judge leaves open (tone, style, role), put to the model."""

from __future__ import annotations

from steelyard.judges.local.reader import Model, language, share_of_yes
from steelyard.records import Numbered
from steelyard.tasks import ComplianceData, ComplianceReply, ComplianceVerdict

# In characters: what a small model can hold of a long answer together with the question about it.
LONGEST_ANSWER = 3000
LONGEST_PROMPT = 600
# From the first share for yes on a criterion is met, up to the second it is not; in between it stays open. No labelled
# set was at hand: with these numbers, none of twelve examples of our own got a wrong label, and three got one.
MET, NOT_MET = 0.65, 0.15


def settled(data: ComplianceData, reply: ComplianceReply, model: Model) -> ComplianceReply:
    """The reply with labels for those open criteria that the model is sure about."""
    doubts = {doubt.id for doubt in reply.unsure if doubt.items == "criteria"}
    open_ = [item for item in data.criteria if item.id in doubts]
    if not open_ or len(data.answer) > LONGEST_ANSWER:
        return reply
    with model.turn():
        found = [verdict for item in open_ if (verdict := _verdict(item, data, model))]
    decided = {verdict.id for verdict in found}
    rest = [doubt for doubt in reply.unsure if doubt.items != "criteria" or doubt.id not in decided]
    return reply.model_copy(update={"criteria": [*reply.criteria, *found], "unsure": rest})


def _verdict(item: Numbered, data: ComplianceData, model: Model) -> ComplianceVerdict | None:
    content, bar, _ = item.text.rpartition(" | ")
    criterion = content if bar else item.text
    spoken = language(criterion)
    values = {"prompt": data.prompt[:LONGEST_PROMPT], "answer": data.answer, "criterion": criterion}
    share = share_of_yes(model, "compliance", spoken, values)
    if share is None or NOT_MET < share < MET:
        return None
    is_met = share >= MET
    confidence = share if is_met else 1 - share
    percent = round(100 * confidence)
    if spoken == "zh":
        reason = f"模型认为{'做到了' if is_met else '没有做到'}（把握{percent}%）"
    else:
        reason = f"the model finds it {'met' if is_met else 'not met'} ({percent} % sure)"
    return ComplianceVerdict(id=item.id, reason=reason, complies="fully" if is_met else "no", confidence=confidence)
