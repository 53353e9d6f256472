"""All that rewrite, by name."""

from dataclasses import dataclass
from importlib import import_module

from benchmarks.rewriters.job import Start


@dataclass(frozen=True)
class Peer:
    """An engine with one of its layouts, and the format of the table that it gets."""

    name: str
    title: str
    format: str
    function: str
    """Module in this package and function in it; imported only in the process that runs it."""

    def start(self) -> Start:
        """Import the function."""
        module, _, name = self.function.partition(".")
        found: Start = getattr(import_module(f"benchmarks.rewriters.{module}"), name)
        return found


ALL = (
    Peer("zonal-delta-zorder", "zonal zorder, Delta", "delta", "zonalspark.delta_zorder"),
    Peer("zonal-delta-hilbert", "zonal hilbert, Delta", "delta", "zonalspark.delta_hilbert"),
    Peer("zonal-iceberg-zorder", "zonal zorder, Iceberg", "iceberg", "zonalspark.iceberg_zorder"),
    Peer("zonal-iceberg-hilbert", "zonal hilbert, Iceberg", "iceberg", "zonalspark.iceberg_hilbert"),
    Peer("delta-zorder", "Delta OPTIMIZE ZORDER BY", "delta", "deltaspark.zorder"),
    Peer("delta-liquid", "Delta liquid, OPTIMIZE FULL", "delta", "deltaspark.liquid"),
    Peer("iceberg-zorder", "Iceberg rewrite, zorder", "iceberg", "icebergspark.zorder"),
    Peer("iceberg-hilbert", "Iceberg rewrite, hilbert", "iceberg", "icebergspark.hilbert"),
    Peer("delta-rs", "delta-rs z_order", "delta", "deltars.zorder"),
    Peer("spark-sort", "Spark sort", "parquet", "sparksort.linear"),
)
ZONAL = "zonal"


def chosen(names: str | None) -> list[Peer]:
    """Return the peers whose name, or its first words, are in a list with commas; all by default."""
    if names is None:
        return list(ALL)
    asked = [name.strip() for name in names.split(",")]
    found = [peer for peer in ALL if any(peer.name == name or peer.name.startswith(f"{name}-") for name in asked)]
    unknown = [name for name in asked if not any(f"{peer.name}-".startswith(f"{name}-") for peer in ALL)]
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(peer.name for peer in ALL)}.")
    return found
