"""Check rows against a table's schema, and convert them where that changes no value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyarrow import types

from zonal.errors import ColumnError, TableError, quoted, suggestion
from zonal.plan.append import Appending
from zonal.plan.rewrite import Reading
from zonal.worker.problem import FileError
from zonal.worker.read.projection import ArrowFileSchema, Projection, filling, project
from zonal.worker.read.promotion import promotion


@dataclass(frozen=True)
class Conversion:
    """The conversion of rows of one schema to the columns of a table."""

    table: str
    given: pa.Schema
    wanted: pa.Schema
    defaults: Mapping[str, pa.Scalar]

    @classmethod
    def of(cls, table: str, given: pa.Schema, appending: Appending) -> "Conversion":
        """Return the conversion, or raise one error that lists everything in which the schemas differ."""
        wrong = [*differences(given, appending)]
        if wrong:
            listed = "".join(f"\n- {each}" for each in wrong)
            raise ColumnError(f"The rows don't fit the schema of {quoted(table, limit=200)}:{listed}")
        return cls(table, given, appending.schema, appending.defaults)

    def rows(self, data: pa.Table) -> pa.Table:
        """Return the rows with the table's columns in its order; an error names a column whose values don't fit."""
        try:
            read = data.select(list(self._projection.sources))
            fitted = self._with_defaults(self._projection.apply(read, data.num_rows))
        except (FileError, pa.ArrowInvalid) as error:
            raise TableError(f"The rows can't be appended to {quoted(self.table, limit=200)}: {error}.") from None
        for field, column in zip(fitted.schema, fitted.columns, strict=True):
            if column.null_count and not field.nullable:
                raise TableError(
                    f"The rows can't be appended to {quoted(self.table, limit=200)}: the required column "
                    f"{quoted(field.name)} has nulls."
                )
        return fitted

    @cached_property
    def _projection(self) -> Projection:
        # A column that rows lack is filled afterwards, so a required one with a default may be null until then.
        loose = [field.with_nullable(True) if self._is_filled(field.name) else field for field in self.wanted]
        return project(pa.schema(loose), ArrowFileSchema(self.given), Reading(pa.schema(loose)))

    def _is_filled(self, name: str) -> bool:
        return name in self.defaults and name not in self.given.names

    def _with_defaults(self, data: pa.Table) -> pa.Table:
        columns = [
            pa.chunked_array([filling(self.defaults[field.name], field, field.name)(data.num_rows)], field.type)
            if self._is_filled(field.name)
            else column
            for field, column in zip(self.wanted, data.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.wanted)


def differences(given: pa.Schema, appending: Appending) -> Iterator[str]:
    """Yield one sentence for everything that keeps rows of a schema from being appended."""
    wanted = appending.schema
    for name in dict.fromkeys(name for name in given.names if given.names.count(name) > 1):
        yield f"{quoted(name)} is there {given.names.count(name)} times: rename or drop all but one."
    for name in given.names:
        if name not in wanted.names:
            yield f"The table has no column {quoted(name)}. {suggestion(name, wanted.names)}".rstrip()
    for field in wanted:
        if field.name in given.names:
            if given.names.count(field.name) == 1:
                yield from _differ(given.field(field.name), field, field.name)
        elif field.name in appending.unfillable:
            yield f"{quoted(field.name)} is missing: {appending.unfillable[field.name]}."
        elif not field.nullable and field.name not in appending.defaults:
            yield f"{quoted(field.name)} ({_short(field.type)}) is missing, and the table requires it."


def _differ(have: pa.Field, want: pa.Field, path: str) -> Iterator[str]:
    kind, stored = want.type, have.type
    if types.is_null(stored) and want.nullable:
        return
    if types.is_struct(kind) and types.is_struct(stored):
        yield from _structs_differ(list(stored), list(kind), path)
    elif types.is_map(kind) and types.is_map(stored):
        yield from _differ(stored.key_field, kind.key_field, f"{path}.key")
        yield from _differ(stored.item_field, kind.item_field, f"{path}.value")
    elif _is_list(kind) and _is_list(stored):
        yield from _differ(stored.value_field, kind.value_field, f"{path}.element")
    elif types.is_nested(kind) or types.is_nested(stored) or promotion(stored, kind) is None:
        yield f"{quoted(path)} is {_short(stored)}, which can't become {_short(kind)} without changing values."


def _structs_differ(have: Sequence[pa.Field], want: Sequence[pa.Field], path: str) -> Iterator[str]:
    """Compare the fields of structs, none of which may be missing: only whole columns are filled."""
    stored, wanted = {field.name: field for field in have}, {field.name: field for field in want}
    if len(stored) < len(have):
        yield f"{quoted(path)} has several fields of the same name."
    for name in stored:
        if name not in wanted:
            yield f"The table has no field {quoted(f'{path}.{name}')}. {suggestion(name, list(wanted))}".rstrip()
    for name, field in wanted.items():
        if name in stored:
            yield from _differ(stored[name], field, f"{path}.{name}")
        else:
            yield f"{quoted(f'{path}.{name}')} ({_short(field.type)}) is missing."


def _is_list(kind: pa.DataType) -> bool:
    return isinstance(
        kind, (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)
    )


def _short(kind: pa.DataType) -> str:
    return str(kind) if len(str(kind)) <= 80 else f"{str(kind)[:79]}…"
