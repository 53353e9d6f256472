"""Addresses of masters and servers: refused before anything starts where they are none, or nothing answers."""

import os
import socket

import pytest

from zonal.errors import ZonalError
from zonal.spark import address, session


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def refusal(check, name):
    with pytest.raises(ZonalError) as caught:
        check(name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("yran", "Spark knows no master 'yran'. Did you mean 'yarn'?"),
        ("mesos://host:5050", "Spark knows no master 'mesos://host:5050'. Masters are: here, local, local[*], "),
        ("spark://host", "'spark://host' is no address of a Spark master: write it as spark://HOST:PORT."),
        ("spark://nosuch.invalid:7077", "'spark://nosuch.invalid:7077': the host isn't known ("),
        ("spark://127.0.0.1:1", "No Spark master answers at 'spark://127.0.0.1:1': Connection refused. Start it"),
        ("spark://127.0.0.1:1,[::1]:2", "127.0.0.1:1: Connection refused; ::1:2: "),
        ("k8s://https://127.0.0.1:1", "No Kubernetes answers at 'k8s://https://127.0.0.1:1': Connection refused"),
    ],
)
def test_masters_that_are_none_or_do_not_answer_are_told_before_anything_starts(master, told):
    assert told in refusal(address.check_master, master)


@pytest.mark.parametrize(
    ("remote", "told"),
    [
        (
            "sc://localhost:1/;token=secret",
            "No Spark Connect server answers at 'sc://localhost:1/': Connection refused.",
        ),
        ("sc://nosuch.invalid", "the host isn't known"),
        ("somewhere", "'somewhere' is no Spark Connect server: write it as sc://HOST or sc://HOST:PORT."),
        ("spark://127.0.0.1:1", "'spark://127.0.0.1:1' is no Spark Connect server"),
    ],
)
def test_servers_that_are_none_or_do_not_answer_are_named_without_their_token(remote, told):
    found = refusal(address.check_server, remote)
    assert told in found
    assert "secret" not in found


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,3]", "local-cluster[1,1,1024]", "yarn"])
def test_masters_that_need_no_address_are_taken(master):
    address.check_master(master)


def test_one_master_of_several_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address.check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_an_address_behind_a_proxy_is_not_knocked_at_but_its_exceptions_are(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:3128")
    address.check_server("sc://nosuch.invalid")
    monkeypatch.setenv("no_proxy", "nosuch.invalid")
    assert "isn't known" in refusal(address.check_server, "sc://nosuch.invalid")


def test_a_master_that_does_not_answer_starts_no_jvm(monkeypatch):
    monkeypatch.setattr(session, "_running", lambda: None)
    monkeypatch.setattr(session, "start_jvm", lambda _: pytest.fail("a JVM was started"))
    with pytest.raises(ZonalError, match=r"No Spark master answers at 'spark://127\.0\.0\.1:1'"):
        session.spark_session(master="spark://127.0.0.1:1").__enter__()
