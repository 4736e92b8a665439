"""Writes the dashboards as JSON for Grafana: `python collector-config/grafana/build_dashboards.py`.

Change what is in `source/`, run this, commit both. `--check` writes nothing and fails if the files are out of date.
Needs `grafana-foundation-sdk`, whose types are those of Grafana's own schemas.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from source import health, one_agent, quality

FOLDER = Path(__file__).parent / "dashboards"


def rendered() -> dict[Path, str]:
    """File to its text."""
    return {
        FOLDER / f"{module.UID}.json": json.dumps(module.dashboard(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
        for module in (quality, health, one_agent)
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a file is out of date")
    check = parser.parse_args().check
    files = rendered()
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    stale += [path for path in FOLDER.glob("*.json") if path not in files]
    if check:
        sys.stderr.writelines(f"{path.name} is out of date: run {Path(__file__).name}\n" for path in stale)
        return 1 if stale else 0
    for path, text in files.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
