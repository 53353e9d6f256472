"""Spark's event logs: the scans of one table in the plans of SQL executions, with their filters."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timezone
from urllib.parse import unquote

from zonal.predicates.expressions import And, IsNull, Predicate
from zonal.sql.ask import TableRead
from zonal.workload.iceberg_filters import read_iceberg
from zonal.workload.pushed_filters import all_of, read_partition_filters, read_pushed
from zonal.workload.records import LogEntry, moment_of

_STARTS = "SparkListenerSQLExecutionStart"
_TASK = re.compile(r'"Stage ID":(\d{1,10})[,}]')
_TASK_BYTES = re.compile(r'"Input Metrics":\{[^{}]*"Bytes Read":(\d{1,18})')
_EXECUTION = re.compile(r'"spark\.sql\.execution\.id":"(\d{1,18})"')
_STAGES = re.compile(r'"Stage IDs":\[([\d,\s]{0,1000000})\]')
_ATTRIBUTE = re.compile(r"([^\s,\[\](){}#]+)#(\d+)(L?)")
_ICEBERG = re.compile(
    r"Iceberg\w*\(table=(.*?), schemaId=.*?filters=(.*?),? ?(?:runtimeFilters=.*)?groupedBy=", re.DOTALL
)
_LOCATION = re.compile(r"[A-Za-z]+\(\d+ paths\)\[(.*?)(?:, ?\.\.\.|\])", re.DOTALL)
_EVIDENCE = re.compile(r"([^\s,\[\](){}#]+)#\d+ (?:<=>|=|<=|>=|<|>) \d{4}-\d\d-\d\d( \d\d:\d\d)?")
_MOST_NODES = 100_000

CUT_OFF = '{"Event":"SparkListenerSQLExecutionStart"'
"""A line that stands for the rest of a damaged log, and is counted as an event that can't be read."""


@dataclass
class _Statement:
    """A root execution with all executions that it started: commands run queries inside."""

    source: str
    time: object = None
    scans: dict[str, TableRead] = field(default_factory=dict)
    bytes: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class _Node:
    """A node of a plan, as far as scans need it."""

    name: str
    text: str
    facts: Mapping[str, str]


def read_event_log(lines: Iterable[tuple[str, str]], tables: Sequence[str]) -> Iterator[LogEntry]:
    """Yield one entry per SQL execution of an application; `lines` are pairs of an event's source and its text.

    A scan of a cached table counts once, when the cache is filled; a scan that one execution shows twice counts once.
    """
    statements: dict[object, _Statement] = {}
    roots: dict[int, object] = {}
    stages: dict[int, int] = {}
    cached: set[str] = set()
    for source, line in lines:
        head = line[:200]
        if _STARTS in head:
            _start(source, line, tables, statements, roots, cached)
        elif '"SparkListenerJobStart"' in head:
            execution, numbers = _EXECUTION.search(line), _STAGES.search(line)
            if execution and numbers:
                stages.update({int(stage): int(execution[1]) for stage in numbers[1].split(",") if stage.strip()})
        elif '"SparkListenerTaskEnd"' in head:
            stage, size = _TASK.search(line), _TASK_BYTES.search(line)
            root = roots.get(stages.get(int(stage[1]), -1)) if stage else None
            if size and root in statements:
                statements[root].bytes = (statements[root].bytes or 0) + int(size[1])
    for statement in statements.values():
        scans, time = tuple(statement.scans.values()), moment_of(statement.time, timezone.utc)
        yield LogEntry(statement.source, scans=scans, problem=statement.problem, time=time, bytes=statement.bytes)


def _start(
    source: str,
    line: str,
    tables: Sequence[str],
    statements: dict[object, _Statement],
    roots: dict[int, object],
    cached: set[str],
) -> None:
    try:
        event = json.loads(line)
        number = int(event["executionId"])
        nodes = list(_nodes(event["sparkPlanInfo"]))
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        statements[source] = _Statement(source, problem="The event is cut off or isn't one of Spark's.")
        return
    root = event.get("rootExecutionId")
    roots[number] = root if isinstance(root, int) and root in statements else number
    statement = statements.setdefault(roots[number], _Statement(source, event.get("time")))
    keys = {int(match[2]) for node, _ in nodes if "Join" in node.name for match in _ATTRIBUTE.finditer(node.text)}
    times = _times(node.text for node, _ in nodes)
    for node, is_cached in nodes:
        if not is_scan_of(node, tables) or (is_cached and node.text in cached):
            continue
        if is_cached:
            cached.add(node.text)
        statement.scans.setdefault(node.text, _table_read(node, keys, times))


def _nodes(plan: object) -> Iterator[tuple[_Node, bool]]:
    """Yield the nodes of a plan, and whether each is below a cached table, without recursion."""
    waiting: list[tuple[object, bool]] = [(plan, False)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        node, is_cached = waiting.pop()
        if not isinstance(node, dict):
            raise TypeError
        name, facts = str(node.get("nodeName", "")), node.get("metadata") or {}
        yield _Node(name, str(node.get("simpleString", "")), facts), is_cached
        below = is_cached or name.startswith(("InMemoryTableScan", "Scan In-memory table"))
        waiting.extend((child, below) for child in reversed(node.get("children") or []))


def is_scan_of(node: _Node, tables: Sequence[str]) -> bool:
    """Tell whether a node scans the table, by the table's name or by the location of its files."""
    if iceberg := _ICEBERG.search(node.text):
        return any(_is_named(iceberg[1], table) for table in tables)
    if not node.name.startswith("Scan ") or "Location" not in node.facts or _is_rewrite(node):
        return False
    name = node.name.removeprefix("Scan ").partition(" ")[2].strip()
    place = _LOCATION.search(node.facts["Location"])
    paths = [path.strip() for path in place[1].split(",")] if place else []
    if name and any(_is_named(name, table) for table in tables):
        return True
    return any(_is_at(path, table, has_name=bool(name)) for path in paths for table in tables)


def _is_rewrite(node: _Node) -> bool:
    """Tell whether a scan of Delta's DELETE, UPDATE or MERGE reads whole files in order to rewrite them."""
    filters = [node.facts.get(name, "[]") for name in ("PushedFilters", "PartitionFilters")]
    return node.facts["Location"].startswith("TahoeBatchFileIndex") and filters == ["[]", "[]"]


def _is_named(name: str, table: str) -> bool:
    """Compare names from their last parts, as many as both have: `events` is `db.events`."""
    if "/" in table:
        return False
    parts, wanted = (text.replace("`", "").replace('"', "").casefold().split(".") for text in (name, table))
    shared = min(len(parts), len(wanted))
    return parts[-shared:] == wanted[-shared:]


def _is_at(path: str, table: str, *, has_name: bool) -> bool:
    """Compare a location with a path, or if the scan has no name, with a name: `db.events` is `…/db.db/events`."""
    place = _bare(path)
    if "/" in table:
        wanted = _bare(table)
        return place == wanted or place.startswith(wanted + "/")
    if has_name:
        return False
    *schemas, last = table.replace("`", "").replace('"', "").casefold().split(".")
    folders = [folder for folder in place.casefold().split("/") if folder]
    # Partitions may be read one by one: their folders have an equals sign.
    while folders and "=" in folders[-1]:
        folders.pop()
    if not folders or folders[-1] != last:
        return False
    return not schemas or (len(folders) > 1 and folders[-2] in (schemas[-1], f"{schemas[-1]}.db"))


def _bare(path: str) -> str:
    """Return a path without scheme and trailing slash; s3, s3a and s3n are one store."""
    scheme, colon, rest = path.partition(":")
    text = rest if colon and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme) else path
    return "/" + unquote(text).strip("/")


def _times(texts: Iterable[str]) -> dict[str, str]:
    """Return the columns that Spark's own filters compare with dates and times, and which of the two."""
    matches = (match for text in texts for match in _EVIDENCE.finditer(text[:100_000]))
    return {match[1].strip("("): "timestamp" if match[2] else "date" for match in matches}


def _table_read(node: _Node, keys: set[int], times: Mapping[str, str]) -> TableRead:
    """Return the predicate of a scan, and its columns among the join keys."""
    attributes = [(match[1], int(match[2]), match[3]) for match in _ATTRIBUTE.finditer(_output(node.text))]
    joins = tuple(dict.fromkeys(name for name, number, _ in attributes if number in keys))
    if iceberg := _ICEBERG.search(node.text):
        longs = {name for name, _, is_long in attributes if is_long}
        predicate = read_iceberg(iceberg[2].strip(), longs=longs, times=times)
    else:
        kinds = read_schema(node.facts.get("ReadSchema", ""))
        pushed = read_pushed(node.facts.get("PushedFilters", "[]"), kinds)
        predicate = all_of([read_partition_filters(node.facts.get("PartitionFilters", "[]")), pushed])
    return TableRead(_without_join_filters(predicate, joins), joins, 1)


def _without_join_filters(predicate: Predicate, joins: Collection[str]) -> Predicate:
    """Leave out the IS NOT NULL that Spark adds to the keys of joins."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return all_of([p for p in parts if not (isinstance(p, IsNull) and p.negated and p.column.name in joins)])


def _output(text: str) -> str:
    """Return the list of columns that a scan reads: the text in its first brackets."""
    start = text.find("[")
    return text[start : text.find("]", start) + 1] if start >= 0 else ""


def read_schema(text: str, prefix: str = "") -> dict[str, str]:
    """Return the types of a scan's columns, fields of structs by their dotted paths.

    >>> read_schema("struct<id:bigint,price:decimal(12,2),s:struct<a:int>>")
    {'id': 'bigint', 'price': 'decimal(12,2)', 's.a': 'int'}
    """
    kinds: dict[str, str] = {}
    waiting = [(prefix, text)]
    while waiting and len(kinds) < 10_000:
        path, kind = waiting.pop()
        if not (kind.startswith("struct<") and kind.endswith(">")):
            if path:
                kinds[path] = kind
            continue
        fields = [part.partition(":") for part in _fields(kind[7:-1])]
        waiting.extend((f"{path}.{name}" if path else name, inner) for name, _, inner in reversed(fields))
    return kinds


def _fields(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
