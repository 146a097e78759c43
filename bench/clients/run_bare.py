"""The floor: the very calls that Steelyard makes, from a loop that does nothing else.

Bodies are replayed as they were recorded, sample by sample, each round waiting for the one before.
"""

import asyncio
import json
from collections.abc import Iterator
from itertools import groupby

import aiohttp
from meter import CONCURRENCY, KEY, TOLD, URL, measured, report

Rounds = list[list[bytes]]


def recorded() -> list[Rounds]:
    with open(TOLD["calls"], encoding="utf-8") as lines:
        calls = sorted((json.loads(line) for line in lines), key=lambda call: call[:2])
    samples = []
    for _, of_sample in groupby(calls, key=lambda call: call[0]):
        rounds = groupby(of_sample, key=lambda call: call[1])
        samples.append([[body.encode() for *_, body in of_round] for _, of_round in rounds])
    return samples


async def judge(samples: Iterator[Rounds]) -> int:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    answered = 0

    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def call(body: bytes) -> None:
            nonlocal answered
            async with session.post(f"{URL}/chat/completions", data=body) as response:
                reply = json.loads(await response.read())
                json.loads(reply["choices"][0]["message"]["content"])
                answered += 1

        async def work() -> None:
            for rounds in samples:
                for bodies in rounds:
                    await asyncio.gather(*map(call, bodies))

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return answered


everything = recorded()
with measured():
    count = asyncio.run(judge(iter(everything)))
report({}, answered=count)
