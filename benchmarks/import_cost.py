"""What `import otel_evals` costs a process, beside `import opentelemetry.sdk.trace`, which its users have anyway.

Every sample is a fresh interpreter; RSS is what the import added. What `attach()` adds on top is printed too: that
is where the pipeline's modules are loaded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.report import goal, report

PROBE = """
import json, resource, sys, time
def rss():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * resource.getpagesize()
{before}
memory, begin = rss(), time.perf_counter()
{statement}
print(json.dumps([time.perf_counter() - begin, rss() - memory]))
"""

CASES = {
    "sdk_trace": ("", "import opentelemetry.sdk.trace"),
    "otel_evals": ("", "import otel_evals"),
    "otel_evals_after_sdk": ("import opentelemetry.sdk.trace", "import otel_evals"),
    "attach_after_sdk": (
        "from opentelemetry.sdk.trace import TracerProvider\nimport otel_evals",
        "otel_evals.attach(TracerProvider(), settings=otel_evals.Settings())",
    ),
}


def sample(before: str, statement: str) -> tuple[float, float]:
    """(seconds, bytes) of one statement in a fresh interpreter."""
    probe = PROBE.format(before=before, statement=statement)
    output = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout
    seconds, size = json.loads(output)
    return seconds, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    samples: dict[str, list[tuple[float, float]]] = {case: [] for case in CASES}
    for _ in range(rounds):
        for case, (before, statement) in CASES.items():
            samples[case].append(sample(before, statement))
    figures: dict[str, Any] = {}
    for case, values in samples.items():
        seconds = statistics.median(value[0] for value in values)
        megabytes = statistics.median(value[1] for value in values) / 2**20
        figures[case] = {"seconds": round(seconds, 4), "rss_mb": round(megabytes, 2)}
        print(f"{case:22s} {seconds * 1000:8.1f} ms  {megabytes:6.1f} MB")
    extra_mb = figures["otel_evals"]["rss_mb"] - figures["sdk_trace"]["rss_mb"]
    report(
        "import_cost",
        figures,
        {
            "seconds_ratio": goal(figures["otel_evals"]["seconds"] / figures["sdk_trace"]["seconds"], "<= 1.5"),
            "extra_rss_mb": goal(extra_mb, "<= 12"),
        },
    )


if __name__ == "__main__":
    main()
