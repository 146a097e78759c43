"""`python bench/agreement …`: run as a folder, Python sees only the folder itself; this shows it the rest."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT)]

if __name__ == "__main__":
    from agreement.command import main

    sys.exit(main())
