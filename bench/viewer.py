"""How the viewer bears size: time to the first byte of every page and of looks at the table, and the weight of pages.

    python bench/viewer.py              # 100 samples against 100,000
    python bench/viewer.py --large 5000 # to see that everything runs
    python bench/viewer.py --postgres   # a store in PostgreSQL against one in SQLite, both with 100,000 samples

Results go to bench/results, for `run.py --page`.

Both stores are served in turn by the real server on loopback; the median of the ratio counts.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from environments import PROJECT
from results import RESULTS, Results
from table import markdown

from steelyard.people.queues import labelled_twice, with_wanted
from steelyard.records import Atom, Evidence, RagSample, Verdict
from steelyard.settings import Settings, SettingsFile
from steelyard.store import QueueItem, Store, StoreLocation
from steelyard.store.labels import HumanLabel
from steelyard.web.serving import Server, address_of, listen
from steelyard.web.viewer import Viewer

RUN = "20260302-000000-0001"
MANIFEST = {"options": {}, "data": [], "fields": {}, "encoding": "utf-8"}
BATCH = 1000
PAGES = {
    "list of runs": "/runs",
    "one run": f"/runs/{RUN}",
    "table of samples": f"/runs/{RUN}/samples",
    "failures": f"/runs/{RUN}/failures",
    "one sample": f"/runs/{RUN}/samples/s1",
    "its history": f"/runs/{RUN}/samples/s1/history",
    "sets": "/sets",
    "one set of all samples": "/sets/1",
    "queues of the run": f"/runs/{RUN}/queues",
    "one queue": "/queues/1",
    "an item to label": "/queues/1/label",
    "a disagreement": "/queues/1/disagreements",
    "runs to label": "/label",
    "an item to label without a queue": f"/runs/{RUN}/label?n=50",
    "judge and people compared": f"/runs/{RUN}/calibration",
}
SETS: dict[str, dict[str, str]] = {
    "last page of the set": {"page": "2000"},
    "a sample in the set": {"id": "s1"},
}
PEOPLE = ("Li", "Wang")
COOKIE = {"Cookie": f"steelyard_annotator={PEOPLE[0]}"}
LARGEST_QUEUE = 20_000
"""Items; the viewer makes no larger one."""
SLOWEST = 0.5
"""No page may take more seconds than this once a run is indexed."""
MOST_OVER_SMALL = 5.0
MOST_OVER_SQLITE = 1.5
LABELS = ("correct", "wrong", "undetermined")
QUERIES: dict[str, dict[str, str]] = {
    "table of samples, worst first": {},
    "in the order of the input": {"sort": "seq"},
    "its last page": {"page": "2000"},
    "sorted by a score": {"sort": "accuracy"},
    "sorted by title": {"sort": "title"},
    "one label": {"label": "atom:wrong"},
    "one label, by score": {"label": "atom:wrong", "sort": "accuracy:desc"},
    "a range of scores": {"score": "accuracy", "low": "0.2", "high": "0.3"},
    "searched, a thousand hits": {"q": "编号99"},
    "searched, no hit": {"q": "没有这样的话"},
    "searched, every sample hits": {"q": "不建议给大灯贴膜"},
    "searched for two characters, every sample hits": {"q": "大灯"},
    "searched for two characters, few hit": {"q": "号0"},
}


def judged(number: int) -> tuple[int, RagSample, Verdict]:
    """A sample of usual size: three passages, six statements."""
    sample = RagSample(
        id=f"s{number}",
        question=f"第{number}个问题：大灯是否可以贴膜，会不会影响亮度？",
        answer="不建议给大灯贴膜。" * 6 + f"编号{number}。",
        references=("大灯贴膜会影响亮度和散热，" * 12,) * 3,
        tags=(("售前", "售后", "L9")[number % 3],),
    )
    items = tuple(
        Atom(
            id=n,
            text=f"陈述{n}不建议给大灯贴膜",
            label=LABELS[(number * 7 + n) % 3],
            level=1,
            reason="参考资料中说明了这一点",
            evidence=Evidence(reference=0, quote="大灯贴膜会影响亮度", verified=True),
        )
        for n in range(1, 7)
    )
    scores = {"accuracy": number * 37 % 101 / 100, "accuracy_strict": 0.5, "coverage": 1.0, "fallback": 0}
    verdict = Verdict(id=sample.id, protocol="atomic", status="judged", scores=scores, items=items, judge="embedded")
    return number, sample, verdict


def fill(location: StoreLocation, count: int) -> None:
    with Store.open(location) as store:
        store.create_run(RUN, "atomic", "embedded", "2026-03-02T00:00:00+00:00", MANIFEST)
        for start in range(0, count, BATCH):
            store.add_verdicts(RUN, [judged(n) for n in range(start, min(count, start + BATCH))])
        store.update_run(RUN, state="complete", finished="2026-03-02T00:10:00+00:00", manifest=MANIFEST)
        store.add_to_set("regression", RUN, places=range(count), time="2026-03-02T00:20:00+00:00")
        fill_queue(store, count)


def fill_queue(store: Store, count: int) -> None:
    """A queue of which half is labelled: one sample in five by two people, who differ now and then."""
    items = [QueueItem(f"s{n}", "atom", None, at, 1.0, 1) for n in range(count) for at in range(1, 7)][:LARGEST_QUEUE]
    items = with_wanted(items, labelled_twice([item.sample for item in items], 0.2, 0))
    store.add_queue(RUN, "regression", items, people=PEOPLE, policy="1", created="2026-03-02T00:30:00+00:00")

    def labels() -> Iterator[HumanLabel]:
        for place, item in enumerate(items[: len(items) // 2]):
            for who in range(item.wanted):
                yield HumanLabel(
                    **{**item._asdict(), "kind": item.kind},
                    label=LABELS[(place + who * (place % 9 == 0)) % 3],
                    annotator=PEOPLE[who],
                    policy="1",
                    time=f"2026-03-02T01:00:00.{place:06}+00:00",
                    run=RUN,
                )

    store.add_labels(labels())


@contextmanager
def serving(location: StoreLocation) -> Iterator[str]:
    ready = threading.Event()
    server = Server(
        Viewer(Settings(SettingsFile(), {}, "steelyard.toml"), location), listen("127.0.0.1", 0), lambda _: ready.set()
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    ready.wait()
    try:
        yield address_of(server.listening)
    finally:
        server.should_exit = True
        thread.join()


def first_byte(address: str) -> float:
    start = time.perf_counter()
    with urlopen(Request(address, headers=COOKIE)) as answer:
        answer.read(1)
        took = time.perf_counter() - start
        answer.read()
    return took


def weight(address: str, path: str) -> int:
    """A page with everything it loads, in bytes, uncompressed."""
    with urlopen(address + path) as answer:
        page = answer.read()
    loaded = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.decode()))
    return len(page) + sum(len(urlopen(address + part).read()) for part in loaded)


def looked_at(a: str, b: str, given: argparse.Namespace) -> Iterator[tuple[str, float, float]]:
    """What is looked at, the time to the first byte of the second viewer, and that over the first one's, in turn."""
    table = PAGES["table of samples"]
    for address in (a, b):  # index, report and groups are made before the clock starts
        urlopen(f"{address}/api/v1/runs/{RUN}/samples?sort=id").read()
        urlopen(f"{address}/runs/{RUN}.json").read()
        urlopen(f"{address}/runs/{RUN}/failures.json").read()
        urlopen(f"{address}/runs/{RUN}/calibration.json").read()
        urlopen(f"{address}/queues/1.json").read()
        urlopen(Request(f"{address}/runs/{RUN}/label.json?n=50", headers=COOKIE)).read()
    looks = {name: page for name, page in PAGES.items() if page != table}
    looks |= {name: f"{table}?{urlencode(asked)}" for name, asked in QUERIES.items()}
    looks |= {name: f"{PAGES['one set of all samples']}?{urlencode(asked)}" for name, asked in SETS.items()}
    for name, page in looks.items():
        pairs = [(first_byte(a + page), first_byte(b + page)) for _ in range(given.rounds)]
        yield name, statistics.median(y for _, y in pairs), statistics.median(y / x for x, y in pairs)


def times(a: str, b: str, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """With many samples over that with few."""
    for name, seconds, over in looked_at(a, b, given):
        print(f"{name:50} {1000 * seconds:7.0f} ms {over:6.1f} x {_remark(seconds, over)}", file=sys.stderr, flush=True)
        yield {"what": name, "samples": given.large, "small": given.small, "over_small": over}


def times_on_postgres(sqlite: str, postgres: str, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """With a store in PostgreSQL over that with one in SQLite."""
    for name, seconds, over in looked_at(sqlite, postgres, given):
        slow = "too slow" if over > MOST_OVER_SQLITE else ""
        print(f"{name:50} {1000 * seconds:7.0f} ms {over:6.2f} x {slow}", file=sys.stderr, flush=True)
        yield {"what": name, "samples": given.large, "milliseconds": 1000 * seconds, "over_sqlite": over}


def _remark(seconds: float, over: float) -> str:
    slow = ["too slow"] if seconds > SLOWEST else []
    return ", ".join(slow + (["grows too fast"] if over > MOST_OVER_SMALL else []))


def weights(address: str) -> Iterator[dict[str, Any]]:
    for name, page in PAGES.items():
        yield {"what": name, "kb": weight(address, page) / 1000}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=100)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--postgres", action="store_true", help="PostgreSQL against SQLite instead of many against few")
    given = parser.parse_args(arguments)
    results = Results(given.results)
    if given.postgres:
        compare_databases(results, given)
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.db", Path(folder) / "large.db"
        fill(small, given.small)
        fill(large, given.large)
        with serving(small) as a, serving(large) as b:
            results.add("viewer", times(a, b, given))
            results.add("pages", weights(b))
    print(markdown(results.data))


def compare_databases(results: Results, given: argparse.Namespace) -> None:
    sys.path.append(str(PROJECT / "tests"))
    from postgres_server import PostgresServer

    with tempfile.TemporaryDirectory() as folder, closing(PostgresServer()) as server:
        file, url = Path(folder) / "large.db", server.schema("viewer")
        for location in (file, url):
            fill(location, given.large)
        with serving(file) as a, serving(url) as b:
            results.add("viewer on PostgreSQL", times_on_postgres(a, b, given))


if __name__ == "__main__":
    main()
