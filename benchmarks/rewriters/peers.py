"""The engines and layouts that are measured, by name."""

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
        start: Start = getattr(import_module(f"benchmarks.rewriters.{module}"), name)
        return start


ALL = (
    Peer("zonal-delta-zorder", "zonal zorder, Delta", "delta", "zonal_spark.delta_zorder"),
    Peer("zonal-delta-hilbert", "zonal hilbert, Delta", "delta", "zonal_spark.delta_hilbert"),
    Peer("zonal-here", "zonal zorder, Delta, no Spark", "delta", "zonal_here.delta_zorder"),
    Peer("zonal-iceberg-zorder", "zonal zorder, Iceberg", "iceberg", "zonal_spark.iceberg_zorder"),
    Peer("zonal-iceberg-hilbert", "zonal hilbert, Iceberg", "iceberg", "zonal_spark.iceberg_hilbert"),
    Peer("delta-zorder", "Delta OPTIMIZE ZORDER BY", "delta", "delta_spark.zorder"),
    Peer("delta-liquid", "Delta liquid, OPTIMIZE FULL", "delta", "delta_spark.liquid"),
    Peer("iceberg-zorder", "Iceberg rewrite, zorder", "iceberg", "iceberg_spark.zorder"),
    Peer("iceberg-hilbert", "Iceberg rewrite, hilbert", "iceberg", "iceberg_spark.hilbert"),
    Peer("delta-rs", "delta-rs z_order", "delta", "delta_rs.zorder"),
    Peer("spark-sort", "Spark sort", "parquet", "spark_sort.linear"),
)
ZONAL = "zonal"


def chosen(names: str | None) -> list[Peer]:
    """Return the peers whose name, or its first words, are in a list with commas; all by default."""
    if names is None:
        return list(ALL)
    wanted = [name.strip() for name in names.split(",")]
    peers = [peer for peer in ALL if any(peer.name == name or peer.name.startswith(f"{name}-") for name in wanted)]
    unknown = [name for name in wanted if not any(f"{peer.name}-".startswith(f"{name}-") for peer in ALL)]
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(peer.name for peer in ALL)}.")
    return peers
