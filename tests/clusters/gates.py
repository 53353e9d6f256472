"""Gates in a folder that hold tasks back on executors, and tell the driver's side which attempts came there."""

import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

SECONDS = 240
"""How long a task waits at most, so that a test that failed leaves none."""


@dataclass(frozen=True)
class Arrival:
    """An attempt of a task that came to a gate."""

    partition: int
    attempt: int
    executor: int
    """The process of its executor."""
    note: str
    """What it brought, such as the path of a file that it has written."""


class Gate:
    """A gate at which first attempts of tasks wait until it is opened; all attempts are noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def passage(self):
        """Return what an attempt calls in a worker; it is nested, so that it travels by value."""
        folder, seconds = str(self.folder), SECONDS

        def come(note=""):
            import os
            import time
            from pathlib import Path

            from pyspark import TaskContext

            task = TaskContext.get()
            status = Path(f"/proc/{os.getppid()}/status").read_text()  # a worker's parent is a daemon of the executor
            executor = next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))
            name = f"{task.partitionId()} {task.attemptNumber()} {executor}"
            hidden = Path(folder, f".{name} {os.getpid()}")
            hidden.write_text(note)
            hidden.rename(Path(folder, name))
            end = time.monotonic() + seconds
            while not task.attemptNumber() and not Path(folder, "open").exists() and time.monotonic() < end:
                time.sleep(0.05)

        return come

    def arrivals(self) -> list[Arrival]:
        found = [path for path in self.folder.iterdir() if path.name.count(" ") == 2 and path.name[0] != "."]
        return [Arrival(*map(int, path.name.split()), path.read_text()) for path in found]

    def awaited(self, enough) -> list[Arrival]:
        """Wait until `enough` is true of the arrivals."""
        end = time.monotonic() + SECONDS
        while not enough(found := self.arrivals()):
            assert time.monotonic() < end, f"only {found} came to the gate"
            time.sleep(0.05)
        return found

    def open(self) -> None:
        (self.folder / "open").touch()


@contextmanager
def meanwhile(gate: Gate, act):
    """Let `act` run in another thread, and open the gate after it; what it raises is raised at the end."""
    failed = []

    def run():
        try:
            act()
        except BaseException as error:
            failed.append(error)
        finally:
            gate.open()

    thread = Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(SECONDS)
    if failed:
        raise failed[0]


def kill_executor(arrival: Arrival) -> None:
    """End the executor of a task as the system does where memory runs out."""
    words = Path(f"/proc/{arrival.executor}/cmdline").read_bytes()
    assert b"CoarseGrainedExecutorBackend" in words, "only an executor of the test may be killed"
    os.kill(arrival.executor, signal.SIGKILL)


def gated_reads(step, gate: Gate):
    """Return a function like `read_step` whose tasks come to the gate with their first rows."""
    come = gate.passage()

    def gated(*given):
        run = step(*given)

        def read(batches):
            for number, batch in enumerate(run(batches)):
                if number == 0:
                    come()
                yield batch

        return read

    return gated


def gated_writer(writer, gate: Gate, *, before: bool):
    """Return a class like `FileWriter` that comes to the gate before a file is finished, or after it."""
    come = gate.passage()

    class Gated(writer):
        def close(self):
            if before:
                come()
            super().close()
            if not before:
                path = self.done[-1].path.removeprefix("file://")
                with open(path, "rb"):  # the file is there
                    come(path)

    return Gated
