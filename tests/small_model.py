"""SmolLM2-135M, far too small to judge but a real language model: fetched once and kept in the user's cache."""

from __future__ import annotations

import os

from steelyard.judges.models import KeptModel, ModelCache, known_models
from steelyard.judges.models.pulling import pull
from steelyard.judges.models.sources import source_of


def pulled(name: str) -> KeptModel:
    """A known model, pulled as `steelyard models pull` does where it is not yet here."""
    cache = ModelCache.of_user(os.environ)
    if not cache.record(name):
        pull(name, source_of(None, name, known_models()[name], os.environ), cache)
    return cache.find(name)


def small_model() -> KeptModel:
    return pulled("smollm2")
