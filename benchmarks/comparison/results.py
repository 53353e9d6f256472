"""All numbers of a comparison as values, and as the JSON file that runs extend."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.comparison.timed import Pass


@dataclass(frozen=True)
class Table:
    """What a data set was in this comparison."""

    set: str
    scale: float
    rows: int
    files: int
    """As it arrived, and wanted of every system."""
    bytes: int
    columns: tuple[str, ...]
    training: int
    held_out: int
    timed: int

    @property
    def key(self) -> tuple[object, ...]:
        """Return what a results file has once."""
        return (self.set,)


@dataclass(frozen=True)
class Rewrite:
    """One repetition of a system's rewrite."""

    set: str
    system: str
    repetition: int
    cpu_seconds: float
    wall_seconds: float
    whole_cpu_seconds: float
    """With the start of the engine."""
    memory: int
    target: int
    files: int
    bytes: int
    corrected_from: int | None
    """The number of files that the first target size made, where that was too far from the wanted one."""
    load: float
    """What else the machine did: the load average before."""

    @property
    def key(self) -> tuple[object, ...]:
        """Return what a results file has once."""
        return self.set, self.system, self.repetition


@dataclass(frozen=True)
class ReadCost:
    """Mean bytes that a held-out query reads after a system's rewrite."""

    set: str
    system: str
    by_files: float
    by_groups: float
    by_pages: float
    kinds: dict[str, float]

    @property
    def key(self) -> tuple[object, ...]:
        """Return what a results file has once."""
        return self.set, self.system


@dataclass(frozen=True)
class QueryTime:
    """What an engine spent on the timed queries, pass by pass."""

    set: str
    system: str
    engine: str
    queries: int
    passes: tuple[Pass, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Return what a results file has once."""
        return self.set, self.system, self.engine


@dataclass(frozen=True)
class Failure:
    """What didn't work: a rewrite, or an engine's queries; a later run tries it again."""

    set: str
    system: str
    what: str
    message: str

    @property
    def key(self) -> tuple[object, ...]:
        """Return what a results file has once."""
        return self.set, self.system, self.what


Record: TypeAlias = Table | Rewrite | ReadCost | QueryTime | Failure
KINDS: dict[str, type[Record]] = {
    "tables": Table,
    "rewrites": Rewrite,
    "reads": ReadCost,
    "queries": QueryTime,
    "failures": Failure,
}


@dataclass(frozen=True)
class Results:
    """Everything measured so far, with what it was measured on."""

    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    date: str = ""
    tables: tuple[Table, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    reads: tuple[ReadCost, ...] = ()
    queries: tuple[QueryTime, ...] = ()
    failures: tuple[Failure, ...] = ()

    def with_(self, record: Record) -> "Results":
        """Add a record, which replaces the one with its key; what has worked is no failure any more."""
        name = next(name for name, kind in KINDS.items() if isinstance(record, kind))
        kept = tuple(each for each in getattr(self, name) if each.key != record.key)
        failures = self.failures if name == "failures" else _without(self.failures, record)
        changed: dict[str, Any] = {"failures": failures, name: (*kept, record)}
        return replace(self, **changed)

    def has(self, kind: str, *key: object) -> bool:
        """Tell whether there is a record with this key."""
        return any(each.key == key for each in getattr(self, kind))

    def target_of(self, set_: str, system: str) -> int | None:
        """Return the target size that a system was given, after its correction."""
        found = [each.target for each in self.rewrites if (each.set, each.system) == (set_, system)]
        return found[0] if found else None

    def table(self, set_: str) -> Table:
        """Return what a data set was."""
        return next(each for each in self.tables if each.set == set_)

    def to_json(self) -> str:
        """Return the text form; `Results.from_json(results.to_json()) == results`."""
        head = {name: value for name, value in asdict(self).items() if name not in KINDS}
        lines = [f' "{name}": {json.dumps(value)}' for name, value in head.items()]
        for name in KINDS:  # one record per line, so that versions of the file can be compared
            records = ",\n  ".join(json.dumps(asdict(each)) for each in getattr(self, name))
            lines.append(f' "{name}": [\n  {records}\n ]' if records else f' "{name}": []')
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> "Results":
        """Read what `to_json` wrote."""
        read = json.loads(text)
        for name, kind in KINDS.items():
            read[name] = tuple(kind(**dict(_values(each))) for each in read[name])
        return cls(**read | {"commands": tuple(read["commands"])})

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read a file; one that isn't there has no results."""
        return cls.from_json(path.read_text()) if path.exists() else cls()


def _without(failures: tuple[Failure, ...], record: Record) -> tuple[Failure, ...]:
    """Leave out the failure of what a record is the success of."""
    if isinstance(record, Table | Failure):
        return failures
    what = record.engine if isinstance(record, QueryTime) else "rewrite"
    return tuple(each for each in failures if each.key != (record.set, record.system, what))


def _values(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if name == "passes":
            yield name, tuple(Pass(**each) for each in value)
        else:
            yield name, tuple(value) if isinstance(value, list) else value
