"""An Iceberg catalog for each test."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from support.iceberg_tables import catalog_in


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return catalog_in(tmp_path)


@pytest.fixture(params=[2, 3])
def version(request: pytest.FixtureRequest) -> int:
    """Return a format version of Iceberg."""
    return int(request.param)
