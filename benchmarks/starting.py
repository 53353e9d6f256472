"""Measure what a cold `zonal cluster` costs under different settings or Sparks, in turns.

`python -m benchmarks.starting [--rows 200000] [--turns 5] [--variant "NAME | SETTING | …"]…`. A setting is
`python=PATH`, `env KEY=VALUE`, or `KEY=VALUE` for `--conf`. Each turn runs every variant once on a fresh copy of a
Delta table, as a user does: a new process, a new JVM. CPU-seconds are those of the whole process tree; variants are
compared with the first by the median difference of the same turn.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import deltalake
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks.rewriters import usage

TIMEOUT = 900.0
FILES = 8


@dataclass(frozen=True)
class Variant:
    """A way to run the command."""

    name: str
    python: str = sys.executable
    conf: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def command(self, table: Path) -> list[str]:
        """Return what clusters a table."""
        settings = [word for name, value in self.conf.items() for word in ("--conf", f"{name}={value}")]
        environment = [f"{name}={value}" for name, value in self.env.items()]
        options = ["--by", "ts,payload_id", "--target-file-size", "4MB", "--master", "local[2]", *settings]
        program = "import sys; from zonal.cli import main; sys.exit(main())"
        return ["env", *environment, self.python, "-c", program, "cluster", str(table), *options]


def variant_of(text: str) -> Variant:
    """Read a variant."""
    name, *settings = (part.strip() for part in text.split("|"))
    python, conf, env = sys.executable, {}, {}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key == "python":
            python = os.path.abspath(value)  # not resolved: an environment's Python is a link
        elif key.startswith("env "):
            env[key.removeprefix("env ")] = value
        else:
            conf[key] = value
    return Variant(name, python, conf, env)


def make_table(folder: Path, rows: int) -> None:
    """Write telemetry in the order of its arrival, with sixteen columns."""
    rng = np.random.default_rng(1)
    for part in range(FILES):
        count = rows // FILES
        seconds = np.sort(rng.integers(0, 86_400, count)) + part * 86_400
        columns: dict[str, pa.Array] = {
            "ts": pa.array(seconds * 1_000_000 + 1_767_225_600_000_000, pa.timestamp("us", tz="UTC")),
            "payload_id": pa.array(rng.integers(0, 100_000, count)),
            "status": pa.array(rng.choice(["ok", "late", "lost"], count)),
            "note": pa.array([f"note {number}" for number in rng.integers(0, 10_000_000, count)]),
        }
        columns |= {f"value_{number}": pa.array(rng.normal(size=count)) for number in range(12)}
        deltalake.write_deltalake(str(folder), pa.table(columns), mode="append")


def measured(variant: Variant, table: Path, scratch: Path) -> usage.Usage:
    """Run one variant on a copy of the table."""
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        copy, log = Path(name) / "table", Path(name) / "log.txt"
        shutil.copytree(table, copy)
        used = usage.run(variant.command(copy), log=log, timeout=TIMEOUT)
        if used.status:
            raise SystemExit(f"{variant.name} failed with status {used.status}:\n{log.read_text()[-3000:]}")
        return used


def turns_of(variants: Sequence[Variant], table: Path, scratch: Path, turns: int) -> Iterator[list[usage.Usage]]:
    """Measure all variants in each turn, from the last to the first in every other one."""
    for turn in range(turns):
        order = list(range(len(variants)))[:: 1 if turn % 2 == 0 else -1]
        found = {at: measured(variants[at], table, scratch) for at in order}
        yield [found[at] for at in range(len(variants))]


def main() -> None:
    """Measure, and draw one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starting", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--variant", action="append", type=variant_of, help='such as "serial | KEY=VALUE"')
    options = parser.parse_args()
    variants = [Variant("as it is"), *(options.variant or [])]
    console = Console(width=160)
    with tempfile.TemporaryDirectory(prefix="zonal-starting-") as name:
        table = Path(name) / "table"
        make_table(table, options.rows)
        rounds = []
        for found in turns_of(variants, table, Path(name), options.turns):
            rounds.append(found)
            console.print("  ".join(f"{used.cpu_seconds:6.2f}" for used in found), highlight=False)
    drawn = Table(title=f"cold cluster of {options.rows:,} rows, {options.turns} turns", title_justify="left")
    for heading in ("variant", "CPU s", "least", "most", "to the first", "times the first", "wall s", "peak MB"):
        drawn.add_column(heading, justify="left" if heading == "variant" else "right")
    for at, variant in enumerate(variants):
        own = [found[at].cpu_seconds for found in rounds]
        against = [found[at].cpu_seconds - found[0].cpu_seconds for found in rounds]
        ratio = [found[at].cpu_seconds / found[0].cpu_seconds for found in rounds]
        wall = median(found[at].wall_seconds for found in rounds)
        peak = median(found[at].tree_bytes for found in rounds) / 1e6
        numbers = [median(own), min(own), max(own), median(against), median(ratio), wall]
        drawn.add_row(variant.name, *(f"{number:.2f}" for number in numbers), f"{peak:,.0f}")
    console.print(drawn)


if __name__ == "__main__":
    main()
