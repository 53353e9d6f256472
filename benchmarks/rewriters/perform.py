"""Run one rewrite in the measured process: `python -m benchmarks.rewriters.perform PEER JOB ANSWER`.

It starts the engine, rewrites, and records before and after the rewrite the usage of its parent, which measures, with
all descendants.
"""

import os
import pickle
import sys
from pathlib import Path

from benchmarks.rewriters.job import Job
from benchmarks.rewriters.peers import named
from benchmarks.rewriters.usage import moment


def main() -> None:
    """Rewrite once."""
    name, job, answer = sys.argv[1:]
    rewrite = named(name).start()(Job.from_json(job))
    start = moment(os.getppid())
    rewrite()
    Path(answer).write_bytes(pickle.dumps((start, moment(os.getppid()))))


if __name__ == "__main__":
    main()
