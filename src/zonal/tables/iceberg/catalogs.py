"""Find and open PyIceberg's catalogs, which other machines may serve."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.utils.config import Config

from zonal.errors import TableError, option, quoted, suggestion
from zonal.storage.causes import hidden
from zonal.storage.connection import PATIENCE, within
from zonal.storage.options import for_pyiceberg
from zonal.tables.iceberg.errors import what_of
from zonal.tables.iceberg.io import opened_by_storage

EMBEDDED_CATALOG = "zonal"
"""Name of the SQLite catalog in `~/.zonal`, the default where PyIceberg has no catalog configured."""

LOADING = 60.0
"""Seconds to wait for a table: its metadata may be large."""
_REMOTE = ("rest", "hive", "glue", "dynamodb", "bigquery")
Result = TypeVar("Result")

_HOW_TO_CONFIGURE = (
    "Name a catalog in ~/.pyiceberg.yaml, or set PYICEBERG_CATALOG__{name}__URI, "
    "or give the path of a …metadata.json file."
)


def split_catalog(identifier: str, catalog: str | None) -> tuple[str, str | None]:
    """Take the catalog off a name `catalog.namespace.table`, where none is given and one is configured by that name."""
    first, _, rest = identifier.partition(".")
    if catalog is not None or "." not in rest:
        return identifier, catalog
    return (rest, first) if _is_configured(first) else (identifier, None)


def _is_configured(name: str) -> bool:
    if name == EMBEDDED_CATALOG and _embedded_file().exists():
        return True
    try:
        return name.lower() in {known.lower() for known in Config().get_known_catalogs()}
    except Exception:  # a configuration that can't be read is told of where the catalog is opened
        return False


def tables_of(catalog: str | None, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return all tables of a catalog in order, by names that open them: with the catalog where it is configured."""
    opened = find_catalog(catalog, properties)
    prefix = f"{catalog}." if catalog is not None and not properties and _is_configured(catalog) else ""
    try:
        found = in_time(opened.properties, LOADING, lambda: sorted(_tables(opened, ())))
        return tuple(f"iceberg:{prefix}{name}" for name in found)
    except TableError:
        raise
    except Exception as error:  # every catalog brings the errors of its own client
        raise TableError(f"Can't list the tables of the catalog {quoted(opened.name)}: {what_of(error)}") from error


def _tables(catalog: Catalog, parent: tuple[str, ...]) -> Iterator[str]:
    try:
        found = catalog.list_namespaces(parent)
    except Exception:
        if not parent:
            raise
        return  # Glue and Hive have no namespaces inside of others, and say so by an error
    for namespace in found:
        if len(namespace) > len(parent) and namespace[: len(parent)] == parent:
            yield from (".".join(name) for name in catalog.list_tables(namespace))
            yield from _tables(catalog, namespace)


def find_catalog(name: str | None, properties: Mapping[str, str], *, create: bool = False) -> Catalog:
    """Open a catalog of PyIceberg's configuration, or the one in `~/.zonal`; `create` makes SQLite files that lack.

    Without a name it is PyIceberg's default, else the only one that is configured.
    """
    try:
        config = Config()  # read now: PyIceberg's own copy is from when it was imported
        name = name or _default(config, properties)
        if name is None or (name == EMBEDDED_CATALOG and _is_embedded(config, properties)):
            return _embedded_catalog(create=create)
        configured = {**(config.get_catalog_config(name) or {}), **for_pyiceberg(properties)}
        if not configured:
            raise TableError(
                f"Unknown catalog {quoted(name)}. {suggestion(name, config.get_known_catalogs())} "
                + _HOW_TO_CONFIGURE.format(name=name.upper())
            )
        return _open_catalog(name, {key: str(value) for key, value in configured.items()}, create=create)
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"Can't open the catalog {quoted(name or 'default')}: {what_of(error)}") from error


def _default(config: Config, properties: Mapping[str, str]) -> str | None:
    """Return the catalog that is meant where none is named; None for the one in `~/.zonal`."""
    named = config.get_default_catalog_name()
    # Properties with an address are a catalog of their own: another one's credentials must not go there.
    if "uri" in properties or config.get_catalog_config(named) is not None:
        return named
    known = config.get_known_catalogs()
    if len(known) > 1:
        shown = ", ".join(map(quoted, known[:8])) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
        raise TableError(f"Several Iceberg catalogs are configured: {shown}. Name one: {option('catalog', known[0])}.")
    return known[0] if known else named if properties else None


def _is_embedded(config: Config, properties: Mapping[str, str]) -> bool:
    """Tell whether the name of the catalog in `~/.zonal` means that one: it is there, and no other is called so."""
    return not properties and config.get_catalog_config(EMBEDDED_CATALOG) is None and _embedded_file().exists()


def _embedded_file() -> Path:
    return Path.home() / ".zonal" / "catalog.db"


def _embedded_catalog(*, create: bool) -> Catalog:
    file = _embedded_file()
    if create:
        file.parent.mkdir(exist_ok=True)
    elif not file.exists():
        raise TableError("No Iceberg catalog is configured. " + _HOW_TO_CONFIGURE.format(name="DEFAULT"))
    properties = {"uri": f"sqlite:///{file}", "warehouse": str(file.parent / "warehouse")}
    return _open_catalog(EMBEDDED_CATALOG, properties, create=create)


def _open_catalog(name: str, properties: dict[str, str], *, create: bool) -> Catalog:
    """Open a catalog without creating anything: SQLite makes a file, and PyIceberg tables in it, on first contact."""
    properties = opened_by_storage(properties)
    if create:
        return in_time(properties, PATIENCE, lambda: load_catalog(name, **properties))
    scheme, _, path = properties.get("uri", "").partition(":///")
    if scheme.startswith("sqlite") and path and path != ":memory:" and not Path(path).exists():
        raise TableError(f"The catalog {quoted(name)} has no database file {quoted(path, limit=300)}.")
    properties = {"init_catalog_tables": "false", **properties}
    return in_time(properties, PATIENCE, lambda: load_catalog(name, **properties))


def in_time(properties: Mapping[str, str], seconds: float, work: Callable[[], Result]) -> Result:
    """Ask a catalog that another machine may serve; where it doesn't answer, an error says so.

    Of PyIceberg's clients, most wait forever.
    """
    uri = str(properties.get("uri", ""))
    if uri.startswith("sqlite") or not (uri or properties.get("type") in _REMOTE):
        return work()
    try:
        return within(seconds, work)
    except TimeoutError:
        at = f" at {hidden(uri)}" if uri else ""
        raise TableError(
            f"The catalog{at} didn't answer within {seconds:g} seconds. Check its property uri, and that this machine "
            "reaches it."
        ) from None


def nearest(catalog: Catalog, identifier: str) -> str:
    """Suggest a table of the same namespace, or a namespace where that doesn't exist."""
    namespace = identifier.rpartition(".")[0]
    try:
        try:
            return suggestion(identifier, [".".join(table) for table in catalog.list_tables(namespace)])
        except NoSuchNamespaceError:
            names = [".".join(other) for other in catalog.list_namespaces()]
            return f"There is no namespace {quoted(namespace)} either. {suggestion(namespace, names)}"
    except Exception:  # the catalog won't list: the table is missing all the same
        return "Name it as namespace.table."
