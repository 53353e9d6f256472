"""Record a table's layout in a Delta log by a commit of its own, which adds and removes no file."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from zonal.errors import ConflictError, quoted
from zonal.layouts.layout import Layout
from zonal.tables.delta.additions import commit_info, parsed_schema, same_table, with_properties
from zonal.tables.delta.commit import Action
from zonal.tables.delta.log import State
from zonal.tables.protocol import LAYOUT_PROPERTY


@dataclass(frozen=True, eq=False)
class DeltaRecording:
    """A layout that becomes the table's own."""

    root: str
    base: State
    """The version that was read."""
    layout: Layout

    def actions(self, current: State) -> Iterator[Action]:
        """Yield the actions of the version after `current`; see `LogChange`."""
        base, name = self.base, quoted(self.root, limit=300)
        same_table(self.root, base, current)
        if parsed_schema(current.metadata) != parsed_schema(base.metadata):
            raise ConflictError(f"The schema of {name} changed since version {base.version}. Run it again.")
        now, before = (state.metadata.configuration.get(LAYOUT_PROPERTY) for state in (current, base))
        if now not in (before, self.layout.to_json()):
            raise ConflictError(f"Another layout of {name} was recorded since version {base.version}. Run it again.")
        return self._lines(current)

    def _lines(self, current: State) -> Iterator[Action]:
        told = {"properties": json.dumps({LAYOUT_PROPERTY: self.layout.to_json()})}
        now = time.time_ns() // 1_000_000
        yield {
            "commitInfo": commit_info(
                current, now, operation="SET TBLPROPERTIES", operationParameters=told, isBlindAppend=True
            )
        }
        yield {"metaData": with_properties(current.metadata, self.layout).action}
