"""The process that is measured: `python -m benchmarks.rewriters.perform PEER JOB ANSWER`.

It starts the engine, rewrites, and notes the CPU time between both ends of the rewrite, of all that the process above
it started.
"""

import json
import os
import sys
import time
from pathlib import Path

from benchmarks.rewriters.job import Job
from benchmarks.rewriters.peers import chosen
from benchmarks.rewriters.usage import cpu_seconds_below


def main() -> None:
    """Rewrite once."""
    name, job, answer = sys.argv[1:]
    (peer,) = (peer for peer in chosen(None) if peer.name == name)
    rewrite = peer.start()(Job.from_json(job))
    wall, cpu = time.monotonic(), cpu_seconds_below(os.getppid())
    rewrite()
    told = {"cpu": cpu_seconds_below(os.getppid()) - cpu, "wall": time.monotonic() - wall}
    Path(answer).write_text(json.dumps(told))


if __name__ == "__main__":
    main()
