"""The judged samples of runs, and the rows of their inputs that could not be read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.errors import InputError
from steelyard.records import Sample, Verdict
from steelyard.store.database import Database, batches, insert, placeholders, upsert
from steelyard.store.rows import SAMPLE

ADD_BAD_ROW = insert("bad_rows", "run file line field problem")
ADD_VERDICT = upsert("samples", "run seq id sample status verdict", "run seq")
READ_TOGETHER = 500


class VerdictTable(Database):
    """Samples with their verdicts, by run and place in the input."""

    def add_verdict(self, run: str, seq: int, sample: Sample, verdict: Verdict) -> None:
        self.write(ADD_VERDICT, *verdict_row(run, seq, sample, verdict))

    def add_verdicts(self, run: str, judged: Iterable[tuple[int, Sample, Verdict]]) -> None:
        """Several at once, all or none."""
        self.change((ADD_VERDICT, [verdict_row(run, *one) for one in judged]))

    def add_bad_row(self, run: str, bad: InputError) -> None:
        self.write(ADD_BAD_ROW, *bad_row(run, bad))

    def clear_bad_rows(self, run: str) -> None:
        self.write("DELETE FROM bad_rows WHERE run = ?", run)

    def bad_rows(self, run: str) -> list[InputError]:
        rows = self.query("SELECT file, line, field, problem FROM bad_rows WHERE run = ?", run)
        return [InputError(problem, file=file, line=line, field=field) for file, line, field, problem in rows]

    def verdicts(self, run: str) -> Iterator[tuple[Sample, Verdict]]:
        """The judged samples of a run in the order of the input, streamed."""
        rows = self.stream("SELECT sample, verdict FROM samples WHERE run = ? ORDER BY seq", run)
        with self.explained_errors():
            for sample, verdict in rows:
                yield SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)

    def verdicts_at(self, run: str, places: Sequence[int]) -> Iterator[tuple[int, Sample, Verdict]]:
        """The judged samples at these places of the input, streamed; those that are not there are left out."""
        sql = "SELECT seq, sample, verdict FROM samples WHERE run = ? AND seq BETWEEN ? AND ? ORDER BY seq"
        wanted = sorted(places)
        start = 0
        while start < len(wanted):
            # Neighbours are read together: one statement per place takes ten times as long.
            end = start
            while end + 1 < len(wanted) and wanted[end + 1] == wanted[end] + 1:
                end += 1
            with self.explained_errors():
                for seq, sample, verdict in self.stream(sql, run, wanted[start], wanted[end]):
                    yield seq, SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)
            start = end + 1

    @abstractmethod
    def lines(self, run: str) -> Iterator[str]:
        """The result lines of a run in the order of the input, as text; only the notes are taken out."""

    def judged(self, run: str) -> dict[str, int]:
        """How many samples of a run have which status."""
        return dict(self.query("SELECT status, count(*) FROM samples WHERE run = ? GROUP BY status", run))

    def unaccounted(self, run: str, rows: int) -> int:
        """How many of so many rows of the input have neither a verdict nor an error in the store."""
        sql = (
            "SELECT (SELECT count(*) FROM samples WHERE run = ? AND status IS NOT NULL AND seq < ?)"
            " + (SELECT count(*) FROM bad_rows WHERE run = ?)"
        )
        (n,) = next(self.query(sql, run, rows, run))
        return max(0, rows - int(n))

    def kept(self, run: str) -> tuple[int, int]:
        """How many verdicts of a run are in the store, and how many replies it can go on with."""
        sql = "SELECT (SELECT count(*) FROM samples WHERE run = ?), (SELECT count(*) FROM used WHERE run = ?)"
        verdicts, replies = next(self.query(sql, run, run))
        return verdicts, replies

    def count_flagged(self, run: str, flag: str) -> int:
        """How many samples of a run carry a flag."""
        (n,) = next(self.query(f"SELECT count(*) FROM samples WHERE run = ? AND {self.dialect.flagged}", run, flag))
        return int(n)

    def finished(self, run: str, *, retry: bool = False) -> bytearray:
        """One byte per place in the input: 1 where nothing is left to judge; with `retry`, only fully judged ones.

        Bytes rather than a set: a million samples take one megabyte.
        """
        wanted = "= 'judged'" if retry else "IS NOT NULL"
        (last,) = next(self.query("SELECT coalesce(max(seq), -1) FROM samples WHERE run = ?", run))
        done = bytearray(last + 1)
        for (seq,) in self.stream(f"SELECT seq FROM samples WHERE run = ? AND status {wanted}", run):
            if seq < len(done):  # what came since is not lost: the next look finds it
                done[seq] = 1
        return done

    def verdict(self, run: str, sample_id: str) -> tuple[Sample, Verdict] | None:
        sql = f"SELECT sample, verdict FROM {self.dialect.samples_by_id} WHERE run = ? AND id = ?"
        with self.explained_errors():
            for sample, verdict in self.query(sql, run, sample_id):
                return SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)
        return None

    def history(self, sample_id: str, runs: Sequence[str]) -> dict[str, tuple[Sample, Verdict]]:
        """The sample of this id in each of these runs that judged it."""
        found: dict[str, tuple[Sample, Verdict]] = {}
        for some in batches(runs, READ_TOGETHER):
            wanted = f"run IN ({placeholders(some)}) AND id = ?"
            sql = f"SELECT run, sample, verdict FROM {self.dialect.samples_by_id} WHERE {wanted}"
            with self.explained_errors():
                for run, sample, verdict in self.query(sql, *some, sample_id):
                    if verdict is not None:
                        found[run] = SAMPLE.validate_json(sample), Verdict.model_validate_json(verdict)
        return found

    def document(self, run: str, sample_id: str) -> str | None:
        """A judged sample as it is stored."""
        sql = f"SELECT sample FROM {self.dialect.samples_by_id} WHERE run = ? AND id = ?"
        return next((text for (text,) in self.query(sql, run, sample_id)), None)

    def documents_at(self, run: str, places: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Ids and documents of the samples at these places of the input, in its order."""
        for some in batches(sorted(places), READ_TOGETHER):
            sql = f"SELECT id, sample FROM samples WHERE run = ? AND seq IN ({placeholders(some)}) ORDER BY seq"
            yield from list(self.query(sql, run, *some))


def bad_row(run: str, bad: InputError) -> tuple[Any, ...]:
    return run, bad.file, bad.line, bad.field, bad.problem


def verdict_row(run: str, seq: int, sample: Sample, verdict: Verdict) -> tuple[Any, ...]:
    return run, seq, sample.id, sample.model_dump_json(), verdict.status, verdict.model_dump_json()
