"""The engines and layouts that are measured, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
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
    options: Mapping[str, object] = field(default_factory=dict)
    """Keywords for the function. Of zonal's, all but `kind` are passed on to `zonal.NewFiles`."""

    def start(self) -> Start:
        """Import the function."""
        module, _, name = self.function.partition(".")
        function = getattr(import_module(f"benchmarks.rewriters.{module}"), name)
        return partial(function, **self.options)


ALL = (
    Peer("zonal-delta-zorder", "zonal zorder, Delta", "delta", "zonal_spark.delta", {"kind": "zorder"}),
    Peer("zonal-delta-hilbert", "zonal hilbert, Delta", "delta", "zonal_spark.delta", {"kind": "hilbert"}),
    Peer("zonal-here", "zonal zorder, Delta, no Spark", "delta", "zonal_here.delta", {"kind": "zorder"}),
    Peer("zonal-iceberg-zorder", "zonal zorder, Iceberg", "iceberg", "zonal_spark.iceberg", {"kind": "zorder"}),
    Peer("zonal-iceberg-hilbert", "zonal hilbert, Iceberg", "iceberg", "zonal_spark.iceberg", {"kind": "hilbert"}),
    Peer("delta-zorder", "Delta OPTIMIZE ZORDER BY", "delta", "delta_spark.zorder"),
    Peer("delta-liquid", "Delta liquid, OPTIMIZE FULL", "delta", "delta_spark.liquid"),
    Peer("iceberg-zorder", "Iceberg rewrite, zorder", "iceberg", "iceberg_spark.zorder"),
    Peer("iceberg-hilbert", "Iceberg rewrite, hilbert", "iceberg", "iceberg_spark.hilbert"),
    Peer("delta-rs", "delta-rs z_order", "delta", "delta_rs.zorder"),
    Peer("spark-sort", "Spark sort", "parquet", "spark_sort.linear"),
)
LEARNED = (
    Peer("zonal-delta-tree", "zonal tree, Delta", "delta", "zonal_spark.delta", {"kind": "tree"}),
    Peer("zonal-delta-auto", "zonal auto, Delta", "delta", "zonal_spark.delta", {"kind": "auto"}),
    Peer("zonal-here-auto", "zonal auto, Delta, no Spark", "delta", "zonal_here.delta", {"kind": "auto"}),
)
"""Those that need the queries of a job."""
VARIANTS: tuple[Peer, ...] = ()
"""zonal's with other files: each is a peer above under another name, with keywords of `zonal.NewFiles` in `options`.

Such as `Peer("zonal-here-snappy", "…", "delta", "zonal_here.delta", {"kind": "zorder", "compression": "snappy"})`.
"""
UNTOUCHED = Peer("unclustered", "as it arrived", "delta", "untouched.leave")
ZONAL = "zonal"


def named(name: str) -> Peer:
    """Return a peer of any kind."""
    (peer,) = (peer for peer in (UNTOUCHED, *ALL, *LEARNED, *VARIANTS) if peer.name == name)
    return peer


def chosen(names: str | None, among: tuple[Peer, ...] = ALL) -> list[Peer]:
    """Return the peers whose name, or its first words, are in a list with commas; all by default."""
    if names is None:
        return list(among)
    wanted = [name.strip() for name in names.split(",")]
    peers = [peer for peer in among if any(peer.name == name or peer.name.startswith(f"{name}-") for name in wanted)]
    unknown = [name for name in wanted if not any(f"{peer.name}-".startswith(f"{name}-") for peer in among)]
    if unknown:
        raise SystemExit(f"Unknown: {', '.join(unknown)}. There are: {', '.join(peer.name for peer in among)}.")
    return peers
