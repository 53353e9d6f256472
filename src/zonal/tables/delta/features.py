"""The features of Delta tables: which zonal reads, and which it can keep when it writes."""

from collections.abc import Mapping, Sequence

from zonal.errors import TableError, quoted
from zonal.tables.delta.log import Metadata, Protocol
from zonal.tables.delta.scan import is_true, tracks_rows

# Reader features that change nothing about how the log, the schema and the statistics are read here.
_SHREDDED = frozenset(("variantShredding", "variantShredding-preview"))
READABLE = _SHREDDED | {
    *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
    *("typeWidening", "typeWidening-preview", "variantType", "variantType-preview"),
}
# Features that a rewrite of unchanged rows can keep. A shredded variant would have to be reassembled first.
REWRITABLE = (READABLE - _SHREDDED) | {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "allowColumnDefaults"),
    *("identityColumns", "rowTracking", "domainMetadata", "clustering", "checkpointProtection"),
    *("inCommitTimestamp", "inCommitTimestamp-preview"),
}


_MANAGED = ("catalogManaged", "catalogOwned", "catalogOwned-preview")


def refuse_unreadable(protocol: Protocol, name: str) -> None:
    if protocol.reader > 3:
        raise TableError(
            f"{quoted(name, limit=300)} asks for Delta reader version {protocol.reader}; zonal reads up to 3."
        )
    if managed := [feature for feature in protocol.reader_features if feature in _MANAGED]:
        raise TableError(
            f"{quoted(name, limit=300)} is managed by a catalog (Delta feature {quoted(managed[0])}), as tables of "
            "Unity Catalog can be: its log alone doesn't say which version is newest, and only the catalog commits. "
            "Let its own engine cluster it, or turn catalog commits off."
        )
    if unknown := sorted(set(protocol.reader_features) - READABLE):
        names = ", ".join(quoted(feature) for feature in unknown)
        raise TableError(
            f"{quoted(name, limit=300)} can't be read: zonal doesn't know its Delta reader feature {names}."
        )


def blockers_of(protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """Name the features that a rewrite couldn't keep; writer versions up to 6 imply known features only."""
    features = sorted({*protocol.reader_features, *protocol.writer_features} - REWRITABLE)
    blockers = [f"table feature {feature}" for feature in features]
    if protocol.writer > 7:
        blockers.append(f"writer version {protocol.writer}")
    settings = ("delta.universalFormat.enabledFormats", "delta.coordinatedCommits.commitCoordinator-preview")
    return (*blockers, *(f"table property {name}" for name in settings if metadata.configuration.get(name)))


def refuse_unwritable(blockers: Sequence[str], name: str) -> None:
    if blockers:
        raise TableError(f"{quoted(name, limit=300)} can't be rewritten: zonal can't keep its {', '.join(blockers)}.")


def may_have_vectors(protocol: Protocol, configuration: Mapping[str, str]) -> bool:
    """Tell whether files of a rewrite may be added with deletion vectors.

    New ones must only be written while the property is set ("Deletion Vectors"). Where rows have ids, equal rows can't
    stand for each other.
    """
    supported = all("deletionVectors" in each for each in (protocol.reader_features, protocol.writer_features))
    tracked = tracks_rows(protocol, configuration) or is_true(configuration, "delta.enableRowTracking")
    return supported and is_true(configuration, "delta.enableDeletionVectors") and not tracked
