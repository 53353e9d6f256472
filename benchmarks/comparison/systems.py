"""The systems of the comparison, in the order in which they take turns and are shown."""

from benchmarks.rewriters import peers
from benchmarks.rewriters.peers import LEARNED, UNTOUCHED, VARIANTS, ZONAL, Peer, named

SYSTEMS: tuple[Peer, ...] = (
    UNTOUCHED,
    *map(named, ("spark-sort", "iceberg-zorder", "iceberg-hilbert", "delta-zorder", "delta-liquid", "delta-rs")),
    *map(named, ("zonal-delta-zorder", "zonal-delta-hilbert", "zonal-iceberg-zorder", "zonal-here")),
    *LEARNED,
    *VARIANTS,
)


def chosen(names: str | None) -> list[Peer]:
    """Return the systems whose name, or its first words, are in a list with commas; all by default."""
    return peers.chosen(names, SYSTEMS)


def title_of(system: str) -> str:
    """Return a system's title."""
    return named(system).title


def is_zonal(system: str) -> bool:
    """Tell whether a system is zonal's own."""
    return system.startswith(ZONAL)
