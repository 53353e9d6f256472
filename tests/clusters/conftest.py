"""Clusters on this machine, each started once, by the first test that asks for it."""

import pytest

from clusters.daemons import connect_server, standalone
from clusters.pythons import python_with


@pytest.fixture(scope="session")
def executor_python(tmp_path_factory):
    """A Python with numpy and pyarrow: neither zonal nor pandas."""
    return python_with(tmp_path_factory.mktemp("python") / "needed")


@pytest.fixture(scope="session")
def master(tmp_path_factory):
    """The address of a standalone cluster with two workers."""
    with standalone(tmp_path_factory.mktemp("standalone") / "cluster") as address:
        yield address


@pytest.fixture(scope="session")
def server(tmp_path_factory, executor_python):
    """The address of a Spark Connect server."""
    with connect_server(tmp_path_factory.mktemp("connect") / "server", executor_python) as address:
        yield address
