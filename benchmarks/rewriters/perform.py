"""The process that is measured: `python -m benchmarks.rewriters.perform PEER JOB ANSWER`.

It starts the engine, rewrites, and notes at both ends of the rewrite what the process above it, which measures, has
used with all that it started.
"""

import os
import pickle
import sys
from pathlib import Path

from benchmarks.rewriters.job import Job
from benchmarks.rewriters.peers import chosen
from benchmarks.rewriters.usage import moment


def main() -> None:
    """Rewrite once."""
    name, job, answer = sys.argv[1:]
    (peer,) = (peer for peer in chosen(None) if peer.name == name)
    rewrite = peer.start()(Job.from_json(job))
    start = moment(os.getppid())
    rewrite()
    Path(answer).write_bytes(pickle.dumps((start, moment(os.getppid()))))


if __name__ == "__main__":
    main()
