"""Runs with a user's own judge prompt: sent unchanged, one call a sample; the reply is parsed as a transcript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steelyard.engine.templates.template import PromptTemplate, form_names
from steelyard.errors import ConfigError
from steelyard.judges.base import Judge
from steelyard.judges.composed import ComposedJudge
from steelyard.protocols import Protocol, get_protocol
from steelyard.protocols.common import Options
from steelyard.records import Rounds, Sample

__all__ = ["PromptTemplate", "check_judge", "check_unchanged", "form_names", "protocol_of_run", "templated"]


def templated(protocol: Protocol, template: PromptTemplate) -> Protocol:
    """The protocol with the user's own prompt: the same items, scores and checks."""
    if protocol.name not in form_names():
        known = ", ".join(form_names())
        raise ConfigError(f"protocol {protocol.name} has no transcript form; a template works with {known}")
    template.check(protocol)

    def rounds(sample: Sample, options: Options) -> Rounds:
        # The readers of transcripts take longer to load than a short run takes; most runs need none.
        from steelyard.engine.templates import rounds as body

        return body.rounds(protocol, template, sample, options)

    return replace(protocol, rounds=rounds, template=template.described())


def protocol_of_run(name: str, manifest: Mapping[str, Any]) -> Protocol:
    """The protocol that a run judged by: with its template, where it had one."""
    template = manifest.get("template")
    return templated(get_protocol(name), PromptTemplate.of_manifest(template)) if template else get_protocol(name)


def check_unchanged(run: str, manifest: Mapping[str, Any]) -> None:
    """Refuse to continue a run whose template file has changed; a missing file is fine, the run has its text."""
    template = manifest.get("template")
    if not template or not Path(template["source"]).is_file():
        return
    if PromptTemplate.read(template["source"]).sha256 != template["sha256"]:
        raise ConfigError(
            f"the template {template['source']} has changed since run {run} began; put it back, or start a new run"
        )


def check_judge(protocol: Protocol, judge: Judge) -> None:
    """A templated run needs one judge that follows a prompt; any other is refused before anything is sent."""
    if not protocol.template or judge.follows_prompts:
        return
    if isinstance(judge, ComposedJudge):
        raise ConfigError(
            f"a template is answered by one judge: {judge.name} votes on, verifies or passes on single items, which "
            "only the shipped prompts ask for"
        )
    raise ConfigError(
        f"{judge.name} reads samples, not prompts, and cannot follow a template; choose a language model, "
        "for example openai:MODEL"
    )
