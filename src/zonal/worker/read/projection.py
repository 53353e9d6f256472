"""Convert rows from a file's schema to the wanted one, with a projection that is worked out once per file schema.

Fields are found by id or by name at every level; types are converted where that changes no value (`promotion`); a field
that the file lacks gets its default or null. Columns stored in the wanted type pass through without a copy.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias

import pyarrow as pa
from pyarrow import types

from zonal.errors import quoted
from zonal.plan.rewrite import FIELD_ID, Reading
from zonal.values.columns import with_dictionaries
from zonal.worker.problem import FileError
from zonal.worker.read.nulls import missing, without_nulls
from zonal.worker.read.promotion import ArrayConverter, promotion, same

Fill: TypeAlias = Callable[[int], pa.Array]
"""Returns a given number of values of a field that the file doesn't have."""


@dataclass(frozen=True, eq=False)
class ArrowFileSchema:
    """A file's schema, with what Arrow's types don't say about it."""

    fields: pa.Schema
    zoneless: frozenset[int] = frozenset()
    """Numbers of the leaves with timestamps for which the file doesn't say whether they are adjusted to UTC."""

    def leaves(self, position: int) -> range:
        """Return the numbers of the Parquet columns below a top-level field."""
        return range(self._starts[position], self._starts[position + 1])

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((leaf_count(field.type) for field in self.fields), initial=0))

    def equals(self, other: "ArrowFileSchema") -> bool:
        """Tell whether one projection is right for both."""
        return self.zoneless == other.zoneless and self.fields.equals(other.fields, check_metadata=True)


@dataclass(frozen=True, eq=False)
class _Column:
    """A wanted column: its position among the columns read, or how it is filled."""

    source: int | None
    convert: ArrayConverter
    fill: Fill


@dataclass(frozen=True, eq=False)
class Projection:
    """The conversion of rows from one file schema to another schema."""

    schema: pa.Schema
    sources: tuple[int, ...]
    """Positions of the file's top-level fields that must be read, ascending."""
    _columns: tuple[_Column, ...]

    def apply(self, data: pa.Table, rows: int) -> pa.Table:
        """Return the wanted columns; `data` has `rows` rows and the file's columns in `sources`."""
        columns = [
            pa.chunked_array([column.fill(rows)], field.type)
            if column.source is None
            else _converted(data.column(column.source), column.convert, field.type)
            for field, column in zip(self.schema, self._columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=with_dictionaries(self.schema, columns))

    def unchanged(self, name: str) -> int | None:
        """Return the position of the file's field that a column is without a conversion; None where it isn't one."""
        at = self.schema.get_field_index(name)
        column = self._columns[at] if at >= 0 else None
        if column is None or column.source is None or column.convert is not same:
            return None
        position: int = self.sources[column.source]
        return position


def project(wanted: pa.Schema, file: ArrowFileSchema, reading: Reading, *, complete: bool = False) -> Projection:
    """Return the projection from a file's schema to `wanted`, a subset of the columns of the reading schema.

    With `complete` the file must have all of them. A `FileError` says what can't be read.
    """
    finder = _Finder(file, reading, complete)
    everything = finder.matches(list(reading.schema), list(file.fields), "")
    if finder.nameless and not everything and len(reading.schema):
        raise FileError("it has no field ids, and the table's name mapping names none of its columns")
    positions = {field.name: everything.get(i) for i, field in enumerate(reading.schema)}
    sources = tuple(sorted({at for field in wanted if (at := positions.get(field.name)) is not None}))
    columns = []
    for field in wanted:
        at = positions.get(field.name)
        if at is None:
            columns.append(_Column(None, same, finder.filling(field, field.name)))
        else:
            convert = finder.conversion(field, file.fields.field(at), file.leaves(at).start, field.name)
            columns.append(_Column(sources.index(at), convert, pa.nulls))
    return Projection(wanted, sources, tuple(columns))


def leaf_count(kind: pa.DataType) -> int:
    """Return how many Parquet columns store a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    return sum(leaf_count(kind.field(i).type) for i in range(kind.num_fields)) if kind.num_fields else 1


def field_id(field: pa.Field) -> int | None:
    """Return a field's id, if it has one."""
    text = (field.metadata or {}).get(FIELD_ID)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise FileError(f"the id of field {quoted(field.name)} is no number") from None


def filling(value: pa.Scalar, field: pa.Field, path: str) -> Fill:
    """Return how to fill a column with one value from the metadata; its type is converted like those of files."""
    convert = promotion(value.type, field.type)
    if convert is None:
        given, wanted = _short(value.type), _short(field.type)
        raise FileError(f"the value of column {quoted(path)} is {given}, which can't be read as {wanted}")
    if not value.is_valid:
        if not field.nullable:
            raise FileError(f"the value of the required column {quoted(path)} is null")
        return lambda rows: missing(rows, field.type)
    one = _explaining(convert, value.type, field.type, path)(pa.repeat(value, 1))[0]
    return lambda rows: pa.repeat(one, rows)


class _Finder:
    """Finds the fields of a table in one file."""

    def __init__(self, file: ArrowFileSchema, reading: Reading, complete: bool) -> None:
        self._file = file
        self._reading = reading
        self._complete = complete
        has_ids = any(field_id(field) is not None for field in _fields_of(file.fields))
        self.nameless = reading.by_id and not has_ids
        """The table goes by field ids, but this file has none: its columns are found through the name mapping."""
        if self.nameless and not reading.aliases:
            raise FileError("it has no field ids, and the table has no name mapping to read it by name")

    def matches(self, wanted: Sequence[pa.Field], have: Sequence[pa.Field], path: str) -> dict[int, int]:
        """Return the position in the file of each wanted field that the file has."""
        if self._reading.by_id and not self.nameless:
            return _match_by_id(wanted, have, path)
        if self.nameless:
            known = self._reading.aliases
            names = [known.get(number, ()) if (number := field_id(field)) is not None else () for field in wanted]
            return _match_by_name(names, have, path)
        return _with_other_case(_match_by_name([(field.name,) for field in wanted], have, path), wanted, have, path)

    def filling(self, field: pa.Field, path: str) -> Fill:
        """Return how to fill a field that the file doesn't have."""
        if self._complete:
            raise FileError(f"it lacks the column {quoted(path)}")
        number = field_id(field) if self._reading.by_id else None
        default = None if number is None else self._reading.defaults.get(number)
        if default is not None and default.is_valid:
            return filling(default, field, path)
        if not field.nullable:
            raise FileError(f"it lacks the required column {quoted(path)}, which has no default value")
        return lambda rows: missing(rows, field.type)

    def conversion(self, want: pa.Field, have: pa.Field, leaf: int, path: str) -> ArrayConverter:
        """Return how to convert a field of the file to the wanted one; `leaf` is the first Parquet column below it."""
        convert = self._by_type(want, have, leaf, path)
        if want.nullable or not have.nullable:
            return convert
        return _refusing_nulls(convert, path)

    def _by_type(self, want: pa.Field, have: pa.Field, leaf: int, path: str) -> ArrayConverter:
        kind, stored = want.type, have.type
        if types.is_struct(kind) and isinstance(stored, pa.BaseExtensionType):
            # Such as a variant, which is a struct of two binary columns.
            below = self._by_type(want, have.with_type(stored.storage_type), leaf, path)
            return lambda array: below(array.storage)
        if types.is_struct(kind) and types.is_struct(stored):
            return self._struct(kind, stored, leaf, path)
        if types.is_map(kind) and types.is_map(stored):
            return self._map(kind, stored, leaf, path)
        if _is_list(kind) and _is_list(stored):
            return self._list(kind, stored, leaf, path)
        convert = None
        if not (types.is_nested(kind) or types.is_nested(stored)):
            convert = promotion(stored, kind, zoneless=leaf in self._file.zoneless)
        if convert is None:
            raise FileError(f"column {quoted(path)} is {_short(stored)}, which can't be read as {_short(kind)}")
        return same if convert is same else _explaining(convert, stored, kind, path)

    def _struct(self, want: pa.StructType, have: pa.StructType, leaf: int, path: str) -> ArrayConverter:
        wanted, stored = list(want), list(have)
        at = self.matches(wanted, stored, path)
        starts = list(accumulate((leaf_count(field.type) for field in stored), initial=leaf))
        children = []
        for i, field in enumerate(wanted):
            below = f"{path}.{field.name}"
            if (j := at.get(i)) is None:
                children.append(_Column(None, same, self.filling(field, below)))
            else:
                # Whether a required field has nulls is checked beside its parent's nulls, in `_rebuilt_struct`.
                children.append(_Column(j, self._by_type(field, stored[j], starts[j], below), pa.nulls))
        unchanged = all(child.source == i and child.convert is same for i, child in enumerate(children))
        if unchanged and have.equals(want):
            return same
        return lambda array: _rebuilt_struct(array, want, children, path)

    def _list(self, want: pa.DataType, have: pa.DataType, leaf: int, path: str) -> ArrayConverter:
        self._same_id(want.value_field, have.value_field, path)
        element = self.conversion(want.value_field, have.value_field, leaf, f"{path}.element")
        if element is same and have.equals(want):
            return same
        plain = pa.list_(have.value_field)
        target = pa.list_(want.value_field)

        def convert(array: pa.Array) -> pa.Array:
            lists = array if types.is_list(array.type) else array.cast(plain)
            rebuilt = _with_values(lists, target, element(lists.values))
            return rebuilt if types.is_list(want) else rebuilt.cast(want)

        return convert

    def _map(self, want: pa.MapType, have: pa.MapType, leaf: int, path: str) -> ArrayConverter:
        self._same_id(want.key_field, have.key_field, path)
        self._same_id(want.item_field, have.item_field, path)
        key = self.conversion(want.key_field, have.key_field, leaf, f"{path}.key")
        after = leaf + leaf_count(have.key_type)
        item = self.conversion(want.item_field, have.item_field, after, f"{path}.value")
        if key is same and item is same and have.equals(want):
            return same
        fields = [want.key_field, want.item_field]

        def convert(array: pa.MapArray) -> pa.Array:
            entries = array.values
            pairs = [key(entries.field(0)), item(entries.field(1))]
            return _with_values(array, want, pa.StructArray.from_arrays(pairs, fields=fields))

        return convert

    def _same_id(self, want: pa.Field, have: pa.Field, path: str) -> None:
        """Refuse elements with another field id than the wanted one; without ids, elements match by position."""
        if not self._reading.by_id or self.nameless:
            return
        stored, wanted = field_id(have), field_id(want)
        if stored is not None and wanted is not None and stored != wanted:
            raise FileError(f"the elements of column {quoted(path)} have the field id {stored} instead of {wanted}")


def _match_by_id(wanted: Sequence[pa.Field], have: Sequence[pa.Field], path: str) -> dict[int, int]:
    positions: dict[int, int] = {}
    for position, field in enumerate(have):
        if (number := field_id(field)) is not None and positions.setdefault(number, position) != position:
            raise FileError(f"it has the field id {number} twice{_inside(path)}")
    numbers = {i: field_id(field) for i, field in enumerate(wanted)}
    # Some fields have no id in the table either, such as those that track the rows of a Delta table: they go by name.
    unnumbered = {field.name: position for position, field in enumerate(have) if field_id(field) is None}
    by_name = {i: unnumbered.get(wanted[i].name) for i, number in numbers.items() if number is None}
    by_id = {i: positions[number] for i, number in numbers.items() if number is not None and number in positions}
    return by_id | {i: position for i, position in by_name.items() if position is not None}


def _match_by_name(names: Sequence[Sequence[str]], have: Sequence[pa.Field], path: str) -> dict[int, int]:
    """Return the position of the one field that has one of the names given for it."""
    matched: dict[int, int] = {}
    for i, any_of in enumerate(names):
        positions = [position for position, field in enumerate(have) if field.name in any_of]
        if len(positions) > 1:
            either = ", ".join(quoted(have[position].name) for position in positions)
            raise FileError(f"it has several columns that one name stands for{_inside(path)}: {either}")
        if positions:
            matched[i] = positions[0]
    return matched


def _with_other_case(
    matched: Mapping[int, int], wanted: Sequence[pa.Field], have: Sequence[pa.Field], path: str
) -> dict[int, int]:
    """Add the fields whose names differ only in case: Delta's and Hive's names are case-insensitive."""
    free = [position for position in range(len(have)) if position not in set(matched.values())]
    added = dict(matched)
    for i, field in enumerate(wanted):
        near = [position for position in free if have[position].name.casefold() == field.name.casefold()]
        if i in matched or not near:
            continue
        if len(near) > 1 or near[0] in added.values():
            raise FileError(f"it has no column {quoted(field.name)}{_inside(path)}, and several that differ in case")
        added[i] = near[0]
    return added


def _converted(column: pa.ChunkedArray, convert: ArrayConverter, kind: pa.DataType) -> pa.ChunkedArray:
    return column if convert is same else pa.chunked_array([convert(chunk) for chunk in column.chunks], kind)


def _rebuilt_struct(array: pa.Array, kind: pa.StructType, children: Sequence[_Column], path: str) -> pa.Array:
    # `flatten` makes the children of a null struct null: a required child with more nulls than its parent is an error.
    stored = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    built = []
    for column, field in zip(children, kind, strict=True):
        child = column.fill(len(array)) if column.source is None else column.convert(stored[column.source])
        if not field.nullable and child.null_count > array.null_count:
            raise FileError(f"the required column {quoted(f'{path}.{field.name}')} has nulls")
        built.append(child if field.nullable else without_nulls(child))
    valid = array.buffers()[0] if array.offset == 0 else None
    if array.null_count and valid is None:
        valid = array.is_valid().buffers()[1]
    valid = valid if array.null_count else None
    return pa.Array.from_buffers(kind, len(array), [valid], array.null_count, children=built)


def _with_values(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Return lists with the same offsets and nulls, but other values."""
    valid, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(kind, len(array), [valid, offsets], array.null_count, array.offset, [values])


def _refusing_nulls(convert: ArrayConverter, path: str) -> ArrayConverter:
    def checked(array: pa.Array) -> pa.Array:
        if array.null_count:
            raise FileError(f"the required column {quoted(path)} has nulls")
        return convert(array)

    return checked


def _explaining(convert: ArrayConverter, have: pa.DataType, want: pa.DataType, path: str) -> ArrayConverter:
    def explained(array: pa.Array) -> pa.Array:
        try:
            return convert(array)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            message = f"column {quoted(path)} is {_short(have)} and can't be read as {_short(want)}: {error}"
            raise FileError(message) from None

    return explained


def _fields_of(fields: pa.Schema | pa.DataType) -> Iterator[pa.Field]:
    """Yield the fields of a schema or a type, and all below them."""
    count = len(fields) if isinstance(fields, pa.Schema) else fields.num_fields
    for field in (fields.field(i) for i in range(count)):
        yield field
        yield from _fields_of(field.type)


def _is_list(kind: pa.DataType) -> bool:
    kinds = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)
    return isinstance(kind, kinds)


def _inside(path: str) -> str:
    return f" in {quoted(path)}" if path else ""


def _short(kind: pa.DataType) -> str:
    return str(kind) if len(str(kind)) <= 80 else f"{str(kind)[:79]}…"
