"""The base class of judges: a judge answers asks. Ten lines make a new one (docs/judges.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from steelyard.records import Ask, Reply, Unjudged

if TYPE_CHECKING:
    from steelyard.judges.endpoint import Price


class Voice(NamedTuple):
    """A judge that answers by itself; `repeat` counts how often the same one was asked before."""

    judge: Judge
    repeat: int = 0


Replacing = Callable[[Voice], "Judge"]


class Judge(ABC):
    """Answers asks. `name` is written beside every verdict, so it should say exactly who judged.

    A subclass needs a `name` and `answer`; everything else has a default.
    """

    name: str
    follows_prompts: bool = True
    """Whether it can answer a prompt of the user's own (docs/templates.md)."""

    @abstractmethod
    async def answer(self, ask: Ask) -> Reply | Unjudged:
        """A reply whose data satisfies `ask.reply`, or why there is none. Raises only `JudgeError`."""

    async def aclose(self) -> None:  # noqa: B027 - most judges hold nothing
        """Give back connections and files."""

    def describe(self) -> dict[str, Any]:
        """What a run's manifest says of this judge, beside its name."""
        return {}

    def fingerprint(self, ask: Ask) -> str:
        """Changes whenever the answer to this ask might. One that is only the name promises nothing."""
        return self.name

    @property
    def caution(self) -> str:
        """A warning for the user before judging with it; empty if there is none."""
        return ""

    @property
    def missing(self) -> str:
        """What it lacks without which every ask fails, such as a key; empty: nothing that is known."""
        return ""

    @property
    def offline(self) -> bool:
        """Whether it is deterministic and needs neither network nor money."""
        return bool(self.describe().get("offline"))

    @property
    def model(self) -> str:
        """The model behind it, by the name that prices are listed under."""
        return ""

    @property
    def price(self) -> Price | None:
        """What its tokens cost, where that is known."""
        return None

    @property
    def structured(self) -> str | None:
        """The mode of structured output that works with it, once a call has shown it."""
        return None

    def described(self) -> dict[str, Any]:
        """The description with the name."""
        return {"name": self.name, **self.describe()}

    def voices(self) -> Sequence[Voice]:
        """The judges that answer by themselves, each once, always in the same order."""
        return (Voice(self),)

    def exchanged(self, replace: Replacing) -> Judge:
        """The same judge with each of its voices replaced, in that order."""
        return replace(Voice(self))


@runtime_checkable
class JudgeLike(Protocol):
    """The minimal interface of a custom judge; `as_judge` adds the rest."""

    @property
    def name(self) -> str: ...

    async def answer(self, ask: Ask) -> Reply | Unjudged: ...

    async def aclose(self) -> None: ...


def as_judge(judge: JudgeLike) -> Judge:
    """Adapt any judge to `Judge`; every entry point that accepts a user's judge calls this."""
    return judge if isinstance(judge, Judge) else AdaptedJudge(judge)


class AdaptedJudge(Judge):
    """A judge of three members; if it also has `describe`, `fingerprint`, `caution` or
    `follows_prompts`, these are used."""

    def __init__(self, judge: JudgeLike) -> None:
        self._judge = judge
        self.follows_prompts = bool(getattr(judge, "follows_prompts", True))

    def __getattr__(self, name: str) -> Any:
        # `name`, which may change, and whatever else its author gave it.
        return getattr(self._judge, name)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        return await self._judge.answer(ask)

    async def aclose(self) -> None:
        await self._judge.aclose()

    def describe(self) -> dict[str, Any]:
        own: Callable[[], dict[str, Any]] = getattr(self._judge, "describe", super().describe)
        return dict(own())

    def fingerprint(self, ask: Ask) -> str:
        own: Callable[[Ask], str] = getattr(self._judge, "fingerprint", super().fingerprint)
        return str(own(ask))

    @property
    def caution(self) -> str:
        return str(getattr(self._judge, "caution", ""))
