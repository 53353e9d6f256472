"""zonal makes lakehouse tables skippable: it clusters their rows over many columns at once."""

from typing import TYPE_CHECKING, Any

from zonal.errors import ZonalAdvice, ZonalError, ZonalNotice

if TYPE_CHECKING:
    from zonal.advising.advice import Prices
    from zonal.auditing.drift import Alerts
    from zonal.display import Display
    from zonal.layouts.batch import Clustered, cluster_batch
    from zonal.layouts.layout import Layout
    from zonal.layouts.ranks import Ranks
    from zonal.rewriting.new_files import NewFiles
    from zonal.rewriting.scope import Scope
    from zonal.spark.place import Spark
    from zonal.sql.dialect import Dialect
    from zonal.study.sampling import Sampling
    from zonal.tables.registry import open_table
    from zonal.verbs.advise import advise
    from zonal.verbs.append import append
    from zonal.verbs.audit import audit, audit_versions
    from zonal.verbs.cluster import cluster
    from zonal.verbs.clustered import clustered
    from zonal.verbs.explain import explain, prune
    from zonal.verbs.read import read
    from zonal.verbs.show import show
    from zonal.verbs.tables import list_tables
    from zonal.verbs.trend import trend
    from zonal.workload.logs import Logs

__version__ = "0.1.0"

__all__ = [
    "Alerts",
    "Clustered",
    "Dialect",
    "Display",
    "Layout",
    "Logs",
    "NewFiles",
    "Prices",
    "Ranks",
    "Sampling",
    "Scope",
    "Spark",
    "ZonalAdvice",
    "ZonalError",
    "ZonalNotice",
    "__version__",
    "advise",
    "append",
    "audit",
    "audit_versions",
    "clean",
    "cluster",
    "cluster_batch",
    "clustered",
    "explain",
    "list_tables",
    "open_table",
    "prune",
    "read",
    "show",
    "trend",
]

_LATER = {
    "Alerts": "zonal.auditing.drift",
    "Clustered": "zonal.layouts.batch",
    "Prices": "zonal.advising.advice",
    "Sampling": "zonal.study.sampling",
    "Dialect": "zonal.sql.dialect",
    "Display": "zonal.display",
    "Layout": "zonal.layouts.layout",
    "NewFiles": "zonal.rewriting.new_files",
    "Ranks": "zonal.layouts.ranks",
    "Scope": "zonal.rewriting.scope",
    "Spark": "zonal.spark.place",
    "Logs": "zonal.workload.logs",
    "advise": "zonal.verbs.advise",
    "append": "zonal.verbs.append",
    "audit": "zonal.verbs.audit",
    "audit_versions": "zonal.verbs.audit",
    "clean": "zonal.verbs.clean",
    "cluster": "zonal.verbs.cluster",
    "cluster_batch": "zonal.layouts.batch",
    "clustered": "zonal.verbs.clustered",
    "explain": "zonal.verbs.explain",
    "prune": "zonal.verbs.explain",
    "read": "zonal.verbs.read",
    "show": "zonal.verbs.show",
    "list_tables": "zonal.verbs.tables",
    "trend": "zonal.verbs.trend",
    "open_table": "zonal.tables.registry",
}
"""Names whose modules bring Arrow, the formats' and SQL's libraries: imported when first used."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what the module holds
    if name not in _LATER:
        raise AttributeError(f"module 'zonal' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
