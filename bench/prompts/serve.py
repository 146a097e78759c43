"""A model to try the prompts on where no endpoint is at hand: `python bench/prompts/serve.py [MODEL] --port 8089`.

llama.cpp's server in this process. Every task and language has its own slot, so that the static part of a prompt, which
is most of it, is read once and not for every sample.
"""

from __future__ import annotations

import argparse
import os
import signal

from steelyard.judges.local.server import NO_LOG, llama_cpp, usable_cores
from steelyard.models import Shelf
from steelyard.tasks import TASKS

LANGUAGES = 2
CONTEXT = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="", help="name or path; default: the local judge's own")
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument("--slots", type=int, default=len(TASKS) * LANGUAGES, help="prompts that are kept read")
    parser.add_argument("--threads", type=int, default=usable_cores())
    given = parser.parse_args()
    llama = llama_cpp()
    settings = llama.CommonParams()
    settings.model.path = str(Shelf.of_user(os.environ).find(given.model).path)
    settings.port = given.port
    settings.n_parallel, settings.n_ctx = given.slots, CONTEXT * given.slots
    for part in (settings.cpuparams, settings.cpuparams_batch):
        part.n_threads, part.poll = given.threads, 0
    settings.verbosity, settings.warmup, settings.cache_ram_mib = NO_LOG, False, 0
    server = llama.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
