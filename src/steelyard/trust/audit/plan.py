"""The plan of an audit: cases made of samples and changes to them. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from steelyard.protocols import get_protocol
from steelyard.records import DialogueSample, Language, RagSample, Sample, Turn
from steelyard.text import language_of, sentences
from steelyard.trust.audit import changes
from steelyard.trust.audit.changes import Variant
from steelyard.trust.audit.suite import DATE, Attack, Base, ErrorPair, Harmless, Suite

Section = Literal["injection", "stability", "sensitivity"]
SECTIONS: tuple[Section, ...] = get_args(Section)
Data = Literal["built_in", "own"]

CHANGES: Mapping[str, Callable[[Sample, Harmless], Variant | None]] = {
    "reorder": changes.reordered,
    "padding": changes.padded,
    "padded_answer": changes.padded_answer,
    "surface": changes.resurfaced,
    "script": changes.in_other_script,
}
# What counts the whole answer (a check, the score) may rightly differ once there is more in it.
ADDS_TO_THE_ANSWER = ("padded_answer",)


@dataclass(frozen=True)
class Trial:
    """One judging: a sample in one protocol. `repeat` above 0 asks anew what was asked before."""

    id: str
    protocol: str
    variant: Variant
    repeat: int = 0


@dataclass(frozen=True)
class InjectionCase:
    """A sample as it is, with a harmless text in it, and with an attack in the same place."""

    attack: Attack
    base: str
    plain: Trial
    control: Trial
    injected: Trial


@dataclass(frozen=True)
class StabilityCase:
    """A sample before and after a change that should change no label."""

    change: str
    base: str
    language: Language
    before: Trial
    after: Trial


@dataclass(frozen=True)
class SensitivityCase:
    """A right answer, and the same with a single error in one of its sentences."""

    kind: str
    base: str
    language: Language
    sentence: int
    clean: Trial
    planted: Trial
    passage: str
    said: str


@dataclass(frozen=True)
class AuditPlan:
    """The cases of one source of data."""

    data: Data
    injections: tuple[InjectionCase, ...] = ()
    stabilities: tuple[StabilityCase, ...] = ()
    sensitivities: tuple[SensitivityCase, ...] = ()

    def trials(self) -> Iterator[Trial]:
        """Every judging that the cases need, each once."""
        known: dict[str, Trial] = {}
        for injection in self.injections:
            for trial in (injection.plain, injection.control, injection.injected):
                known.setdefault(trial.id, trial)
        for stability in self.stabilities:
            for trial in (stability.before, stability.after):
                known.setdefault(trial.id, trial)
        for sensitivity in self.sensitivities:
            for trial in (sensitivity.clean, sensitivity.planted):
                known.setdefault(trial.id, trial)
        yield from known.values()


@dataclass(frozen=True)
class Scope:
    """What is to be measured."""

    protocols: tuple[str, ...]
    sections: tuple[Section, ...] = SECTIONS
    repeats: int = 3

    def fitting(self, sample: Sample) -> Iterator[str]:
        """The protocols that judge such a sample."""
        wanted = isinstance(sample, DialogueSample)
        return (name for name in self.protocols if get_protocol(name).takes_dialogues == wanted)


def built_in(suite: Suite, scope: Scope) -> AuditPlan:
    """The cases of the suite."""
    return AuditPlan(
        "built_in",
        tuple(_injections(suite, [base for base in suite.bases if not base.is_right], scope))
        if "injection" in scope.sections
        else (),
        tuple(_stabilities(suite, suite.bases, scope)) if "stability" in scope.sections else (),
        tuple(_errors(suite.errors, scope)) if "sensitivity" in scope.sections else (),
    )


def own(suite: Suite, samples: Sequence[Sample], scope: Scope) -> AuditPlan:
    """The same for a user's samples, with errors where code can plant them safely."""
    bases = [Base(id=s.id, language=_language(s), is_right=False, sample=s) for s in samples]
    return AuditPlan(
        "own",
        tuple(_injections(suite, bases, scope)) if "injection" in scope.sections else (),
        tuple(_stabilities(suite, bases, scope)) if "stability" in scope.sections else (),
        tuple(_planted(samples, scope)) if "sensitivity" in scope.sections else (),
    )


def _language(sample: Sample) -> Language:
    if isinstance(sample, DialogueSample):
        return language_of(sample.system_prompt, *(turn.answer for turn in sample.turns))
    return language_of(sample.question, sample.answer)


def _trial(base: str, protocol: str, what: str, variant: Variant, repeat: int = 0) -> Trial:
    id = f"{protocol}/{base}/{what}" + (f"/{repeat}" if repeat else "")
    return Trial(id, protocol, variant, repeat)


# --- injection -------------------------------------------------------------------------------------


def _injections(suite: Suite, bases: Sequence[Base], scope: Scope) -> Iterator[InjectionCase]:
    """Each attack in each protocol, on samples of its own language in turn."""
    for protocol in scope.protocols:
        fitting = [base for base in bases if protocol in scope.fitting(base.sample)]
        used: dict[Language, int] = {}
        for attack in suite.attacks:
            speaking = [base for base in fitting if base.language == attack.language]
            if not speaking or protocol not in (attack.protocols or scope.protocols):
                continue
            number = used.get(attack.language, 0)
            used[attack.language] = number + 1
            base = speaking[number % len(speaking)]
            quiet = changes.harmless_text(attack.text, suite.harmless[attack.language])
            injected = changes.with_text(base.sample, attack.text, attack.place, attack.at)
            control = changes.with_text(base.sample, quiet, attack.place, attack.at)
            if injected is None or control is None:
                continue
            yield InjectionCase(
                attack,
                base.id,
                _trial(base.id, protocol, "plain", changes.plain(base.sample)),
                _trial(base.id, protocol, f"harmless:{attack.place}:{attack.at}:{len(quiet)}", control),
                _trial(base.id, protocol, f"attack:{attack.id}", injected),
            )


# --- stability -------------------------------------------------------------------------------------


def _stabilities(suite: Suite, bases: Iterable[Base], scope: Scope) -> Iterator[StabilityCase]:
    for base in bases:
        variants = {name: change(base.sample, suite.harmless[base.language]) for name, change in CHANGES.items()}
        if base.paraphrase is not None:
            variants["paraphrase"] = changes.reworded(base.sample, base.paraphrase)
            variants.pop("surface")
        for protocol in scope.fitting(base.sample):
            before = _trial(base.id, protocol, "plain", changes.plain(base.sample))
            for name, variant in variants.items():
                if variant is not None:
                    after = _trial(base.id, protocol, name, variant)
                    yield StabilityCase(name, base.id, base.language, before, after)
            for repeat in range(1, scope.repeats):
                after = _trial(base.id, protocol, "plain", before.variant, repeat)
                yield StabilityCase("repeat", base.id, base.language, before, after)


# --- sensitivity -----------------------------------------------------------------------------------

# The same error put to a dialogue: the assistant was told what to say, and the criterion is that it says it.
AS_DIALOGUE: Mapping[Language, tuple[str, str]] = {
    "en": (
        "You are an assistant at an information desk. When asked, tell the user: {passage}",
        "The answer says: {clean} | content",
    ),
    "zh-Hans": ("你是问询台的助理。被问到时，须如实告知用户：{passage}", "回答说明：{clean} | 内容约束"),
    "zh-Hant": ("你是詢問台的助理。被問到時，須如實告知使用者：{passage}", "回答說明：{clean} | 內容約束"),
}


def _errors(pairs: Iterable[ErrorPair], scope: Scope) -> Iterator[SensitivityCase]:
    for pair in pairs:
        for protocol in scope.protocols:
            clean, planted = (_pair_sample(pair, answer, protocol) for answer in (pair.clean, pair.planted))
            yield SensitivityCase(
                pair.kind,
                pair.id,
                pair.language,
                0,
                _trial(pair.id, protocol, "clean", changes.plain(clean)),
                _trial(pair.id, protocol, "planted", changes.plain(planted)),
                pair.passage,
                pair.planted,
            )


def _pair_sample(pair: ErrorPair, answer: str, protocol: str) -> Sample:
    if get_protocol(protocol).takes_dialogues:
        # Replaced, not formatted: a passage may hold braces.
        prompt, criterion = AS_DIALOGUE[pair.language]
        prompt, criterion = prompt.replace("{passage}", pair.passage), criterion.replace("{clean}", pair.clean)
        turn = Turn(prompt=pair.question, answer=answer, criteria=(criterion,))
        return DialogueSample(id=pair.id, system_prompt=prompt, turns=(turn,))
    points = (pair.clean,)
    return RagSample(
        id=pair.id, question=pair.question, references=(pair.passage,), key_points=points, answer=answer, date=DATE
    )


def _planted(samples: Iterable[Sample], scope: Scope) -> Iterator[SensitivityCase]:
    for sample in samples:
        if not isinstance(sample, RagSample):
            continue
        language = _language(sample)
        for kind, sentence, wrong in changes.planted(sample):
            said = sentences(wrong.answer)[sentence]
            for protocol in scope.fitting(sample):
                yield SensitivityCase(
                    kind,
                    sample.id,
                    language,
                    sentence,
                    _trial(sample.id, protocol, "plain", changes.plain(sample)),
                    _trial(sample.id, protocol, f"planted:{kind}:{sentence}", changes.plain(wrong)),
                    "",
                    said,
                )
