"""Models for the `local` and `verifier` judges: which are known, where they are kept, how they are fetched.

catalogue.py   the known models with their hashes and licences (known_models.toml, known_verifiers.toml)
cache.py       the folder they are kept in: what is there, and that it is still what was pulled
verifiers.py   the same for verifiers, each of which is a folder of files; folders.py says where these come from
pulling.py     a pull: fetch, verify, put into the cache
sources.py     where the bytes come from: a file, an address, a model hub, data wheels
"""

from steelyard.judges.models.cache import KeptModel, ModelCache
from steelyard.judges.models.catalogue import DEFAULT, KnownModel, known_models

__all__ = ["DEFAULT", "KeptModel", "KnownModel", "ModelCache", "known_models"]
