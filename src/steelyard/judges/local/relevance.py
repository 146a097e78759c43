"""Levels of an answer in which the rules find nothing that answers the question: put to the model instead.

Rules know an answer by the words it shares with the question; a model also knows one in other words.
"""

from __future__ import annotations

from steelyard.judges.embedded.claims import kind_of
from steelyard.judges.local.blend import relevance_limits
from steelyard.judges.local.reading import LONGEST_CLAIM, Model, language
from steelyard.judges.local.server import label_shares
from steelyard.judges.local.template import template
from steelyard.tasks import AtomicData, AtomicReply, GradedAtomVerdict

LONGEST_QUESTION = 600
# These inform nobody, whatever was asked.
EMPTY = ("greeting", "meta", "question")


def graded(data: AtomicData, reply: AtomicReply, model: Model) -> AtomicReply:
    """The reply with the model's levels, if the rules found no atom that answers the question."""
    if not data.question.strip() or any(verdict.level == 1 for verdict in reply.atoms):
        return reply
    texts = {atom.id: atom.text for atom in data.atoms}
    with model.turn():
        atoms = [_graded(verdict, texts[verdict.id], data.question, model) for verdict in reply.atoms]
    return reply.model_copy(update={"atoms": atoms})


def _graded(verdict: GradedAtomVerdict, text: str, question: str, model: Model) -> GradedAtomVerdict:
    if len(text) > LONGEST_CLAIM or kind_of(text, question) in EMPTY:
        return verdict
    share = share_for(model, question, text)
    if share is None:
        return verdict
    spoken = language(text)
    limits, percent = relevance_limits()[spoken], round(100 * share)
    level = 1 if share >= limits.direct else 2 if share >= limits.related else 3
    said = f"模型认为它回答问题的把握为{percent}%" if spoken == "zh" else f"the model is {percent} % sure it answers"
    return verdict.model_copy(update={"level": level, "level_reason": said})


def share_for(model: Model, question: str, statement: str) -> float | None:
    """The model's share for yes, the statement answers the question; None where it gives no answer."""
    asked = template("relevance", language(statement))
    first = model.first_token(asked.messages({"question": question[:LONGEST_QUESTION], "statement": statement}))
    shares = label_shares(first, asked.labels) if first else None
    return shares[0] if shares else None
