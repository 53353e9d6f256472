"""What arrived in a table and what zonal rewrote, as the formats' own logs have it, read without zonal."""

import json

from deltalake import DeltaTable

MARK = "zonal.run"


def delta_commits(table):
    """One entry per commit, oldest first: operation, run, and bytes of the files that it wrote."""
    for log in sorted((table.root / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text().split("\n") if line]
        info = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        size = sum(action["add"]["size"] for action in actions if "add" in action)
        yield info.get("operation", ""), info.get("operationParameters", {}).get(MARK), size


def iceberg_commits(table):
    """The same, from the manifests that each snapshot added."""
    theirs = table.table
    for snapshot in sorted(theirs.metadata.snapshots, key=lambda each: each.sequence_number or 0):
        size = 0
        for manifest in snapshot.manifests(theirs.io):
            if manifest.added_snapshot_id == snapshot.snapshot_id:
                entries = manifest.fetch_manifest_entry(theirs.io, discard_deleted=True)
                added = [each for each in entries if each.snapshot_id == snapshot.snapshot_id]
                size += sum(each.data_file.file_size_in_bytes for each in added)
        yield snapshot.summary.operation.value, snapshot.summary.additional_properties.get(MARK), size


def told_by(table):
    """Return the bytes that arrived and those that were rewritten, as the table's own log has them."""
    commits = list(delta_commits(table) if table.format == "delta" else iceberg_commits(table))
    rewrites = ("OPTIMIZE", "replace")
    arrived = sum(size for operation, _, size in commits if operation not in rewrites)
    rewritten = sum(size for operation, run, size in commits if operation in rewrites and run)
    return arrived, rewritten


def compact(table):
    """Let another writer compact a table, as far as its library can."""
    if table.format == "delta":
        DeltaTable(table.root).optimize.compact()
