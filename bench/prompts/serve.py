"""A model to try the prompts on where no endpoint is at hand: `python bench/prompts/serve.py [MODEL]` prints its URL.

llama.cpp in this process. Every prompt has its own slot, so that its static part, which is most of it, is read once
and not for every sample.
"""

from __future__ import annotations

import argparse
import os
import signal

from steelyard.judges.local.server import ModelServer
from steelyard.judges.models import ModelCache
from steelyard.tasks import TASKS

LANGUAGES = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="", help="name or path; default: the local judge's own")
    parser.add_argument("--slots", type=int, default=len(TASKS) * LANGUAGES, help="prompts that are kept read")
    parser.add_argument("--threads", type=int, help="default: as many as there are cores")
    given = parser.parse_args()
    path = ModelCache.of_user(os.environ).find(given.model).path
    server = ModelServer(path, threads=given.threads, slots=given.slots)
    # Before the first wait: a signal that comes while the model loads is not lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    print(server.address, flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})
    server.close()


if __name__ == "__main__":
    main()
