"""Databases for the history: SQLite, and PostgreSQL where a server can be started."""

import pytest

from support import postgres_server
from support.history_records import new_postgres


@pytest.fixture(scope="session")
def postgres():
    if reason := postgres_server.reason_not_to():
        pytest.skip(reason)
    with postgres_server.server() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """The URL of a database with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    return new_postgres(request.getfixturevalue("postgres"))
