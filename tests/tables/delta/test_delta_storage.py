"""Files of Delta tables are found by their paths, in every storage."""

import os

import pytest

from support.delta_snapshots import HEAD, names, read
from support.delta_tables import add, remove
from zonal.errors import TableError
from zonal.storage import Storage
from zonal.storage.arguments import azure_arguments, s3_arguments
from zonal.storage.options import Given
from zonal.tables.delta.table import DeltaTable
from zonal.worker.read.data_file import open_parquet


def test_paths_are_decoded_once_and_may_be_absolute(log):
    paths = ["p=a%2520b/f", "../x%3Ay", "file:///elsewhere/a%20b", "file:/elsewhere/c", "/store/d", "s3://bucket/k%20y"]
    snapshot = read(log.commit(*HEAD, *map(add, paths)))
    assert snapshot.files.paths.to_pylist() == [
        *(f"{log}/p=a%20b/f", f"{log}/../x:y"),
        *("/elsewhere/a b", "/elsewhere/c", "/store/d", "s3://bucket/k y"),
    ]
    assert read(f"file://{log}").files.paths.equals(snapshot.files.paths), "a URI names the same files"


def test_two_writings_of_a_path_are_one_file(log):
    log.commit(*HEAD, add("a%20b")).commit(remove(f"file://{log}/a%20b"))
    assert names(read(log)) == []


def test_local_files_are_found_however_their_uri_is_written(log):
    paths = [
        f"file:{log.path}/a",
        f"file://{log.path}/b",
        f"file://localhost{log.path}/c",
        f"FILE://LOCALHOST{log.path}/d",
    ]
    log.commit(*HEAD, *map(add, paths))
    assert sorted(read(log).files.paths.to_pylist()) == [f"{log.path}/{name}" for name in "abcd"]
    assert read(f"file://localhost{log.path}").location == str(log.path)
    storage = Storage(str(log.path), {})
    assert storage.locate(f"file://localhost{log.path}/a")[1] == f"{log.path}/a"


def test_a_file_of_another_machine_is_refused(log):
    with pytest.raises(TableError, match="machine 'elsewhere'"):
        read(f"file://elsewhere{log.path}")
    with pytest.raises(TableError, match="machine 'elsewhere'"):
        Storage(str(log.path), {}).locate("file://elsewhere/x")
    log.commit(*HEAD, add("file://elsewhere/x"))
    with pytest.raises(TableError, match="machine 'elsewhere'"):
        read(log)


def test_a_pipe_is_refused_and_not_waited_for(log):
    os.mkfifo(log.path / "pipe")
    log.commit(*HEAD, add("pipe"))
    table = DeltaTable(str(log))
    with pytest.raises(TableError, match=r"/pipe'.* isn't a regular file"):
        table.open_file(table.snapshot().files.paths[0].as_py())
    with (
        pytest.raises(TableError, match=r"/pipe'.* isn't a regular file"),
        open_parquet(Storage(str(log.path), {}), f"{log.path}/pipe"),
    ):
        pass
    os.mkfifo(log.log / f"{1:020d}.json")
    with pytest.raises(TableError, match="isn't a regular file"):
        read(log)


def test_a_missing_data_file_is_named_when_opened(log):
    table = DeltaTable(str(log.commit(*HEAD, add("gone.parquet"))))
    with pytest.raises(TableError, match=r"gone\.parquet"):
        table.open_file(table.snapshot().files.paths[0].as_py())


def test_storage_options_have_their_usual_names():
    given = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t", "region": "eu-west-1"}
    expected = {"access_key": "k", "secret_key": "s", "session_token": "t", "region": "eu-west-1"}
    assert s3_arguments(Given((given,))) == expected
    plain = {"aws_endpoint_url": "minio:9000", "aws_allow_http": "true", "aws_skip_signature": "true"}
    assert s3_arguments(Given((plain,))) == {
        "endpoint_override": "minio:9000",
        "scheme": "http",
        "anonymous": True,
    }
    assert azure_arguments(Given(({"azure_storage_account_key": "k"},)), "box@acc.dfs.core.windows.net") == {
        "account_name": "acc",
        "account_key": "k",
    }


def test_credentials_are_in_no_name_and_no_message():
    table = DeltaTable("s3://user:secret@bucket/table/?region=eu-west-1", storage_options={"AWS_REGION": "eu-west-1"})
    assert table.name == "s3://bucket/table"
    with pytest.raises(TableError) as caught:
        DeltaTable("nowhere://user:secret@host/table").snapshot()
    assert "secret" not in str(caught.value)
