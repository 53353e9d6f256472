"""A Delta log that is damaged, incomplete or too new is an error that names the place."""

import json

import pytest

from support.delta_snapshots import HEAD, names, read
from support.delta_tables import add, features, metadata, protocol, remove
from zonal.errors import TableError
from zonal.tables.delta.table import is_delta

# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_gap_names_the_missing_version(log):
    log.commit(*HEAD).commit(add("a")).commit(add("b")).forget(1)
    with pytest.raises(TableError, match="the commit of version 1 is missing"):
        read(log)
    assert names(read(log, version=0)) == []


@pytest.mark.parametrize("version", [-1, 0, 1, 4])
def test_a_version_that_is_not_there_names_the_range(log, version):
    log.commit(*HEAD).commit().commit().checkpoint(*HEAD).commit().forget(0, 1)
    with pytest.raises(TableError, match=f"Version {version} of .* 2 to 3"):
        read(log, version=version)


@pytest.mark.parametrize("line", ['{"add":', "[1]", '"x"', '{"add":{}} {"add":{}}', "\ufffe"])
def test_a_corrupt_line_names_the_file_and_the_line(log, line):
    log.commit(*HEAD)
    log.log.joinpath(f"{1:020d}.json").write_text('{"commitInfo":{}}\n\n' + line)
    with pytest.raises(TableError, match=r"Line 3 of .*00001\.json"):
        read(log)


BROKEN = [
    {"add": {"size": 1}},
    {"add": {"path": "a"}},
    {"add": 3},
    {"add": {"path": 3, "size": 1}},
    add("a", values={"p": 3}),
    add("a", tags=[1]),
    add("a", deletionVector={"storageType": "u"}),
    {"metaData": {}},
    {"protocol": {}},
]


@pytest.mark.parametrize("action", BROKEN)
def test_an_action_without_its_fields_is_an_error(log, action):
    with pytest.raises(TableError, match="action"):
        read(log.commit(*HEAD, action))


def test_corrupt_files_of_the_log_are_named(log):
    log.commit(*HEAD).checkpoint(*HEAD).forget(0)
    log.log.joinpath(f"{0:020d}.checkpoint.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(TableError, match=r"000\.checkpoint\.parquet"):
        read(log)
    log.commit(*HEAD, version=0).commit().log.joinpath(f"{0:020d}.checkpoint.parquet").unlink()
    log.log.joinpath(f"{1:020d}.json").write_bytes(b"\xff\xfe")
    with pytest.raises(TableError, match=r"0001\.json"):
        read(log)


def test_a_folder_without_a_log_is_no_table(tmp_path):
    assert not is_delta(str(tmp_path))
    with pytest.raises(TableError, match="_delta_log"):
        read(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    assert is_delta(str(tmp_path))
    with pytest.raises(TableError, match="no commit and no checkpoint"):
        read(tmp_path)


@pytest.mark.parametrize(("actions", "missing"), [((HEAD[0],), "metaData"), ((HEAD[1],), "protocol")])
def test_a_log_without_its_first_actions_is_an_error(log, actions, missing):
    with pytest.raises(TableError, match=f"no {missing} action"):
        read(log.commit(*actions))


def test_unknown_reader_features_are_refused_by_name(log):
    log.commit(features("catalogManaged", "deletionVectors"), HEAD[1])
    with pytest.raises(TableError, match=r"managed by a catalog \(Delta feature 'catalogManaged'\)"):
        read(log)
    with pytest.raises(TableError, match="reader version 4"):
        read(log.commit(protocol(4, 7)))


def test_writer_features_block_a_rewrite_only(log):
    known = ["appendOnly", "rowTracking", "clustering", "inCommitTimestamp-preview", "checkpointProtection"]
    log.commit(protocol(1, 7, writer_features=known), HEAD[1])
    assert read(log).blockers == ()
    log.commit(protocol(1, 7, writer_features=[*known, "icebergCompatV2", "collations-preview", "later"]))
    assert read(log).blockers == tuple(
        f"table feature {name}" for name in ("collations-preview", "icebergCompatV2", "later")
    )
    log.commit(protocol(1, 8), metadata(configuration={"delta.universalFormat.enabledFormats": "iceberg"}))
    assert read(log).blockers == ("writer version 8", "table property delta.universalFormat.enabledFormats")


# --- storage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, -(10**15), 2**44 + 1, 10**18, 10**30, 1.5, 1e12, float("nan"), "12", None, True])
def test_a_size_that_no_file_has_is_an_error_that_names_file_and_value(log, size):
    log.commit(*HEAD, add("part-1.parquet", size=size))
    with pytest.raises(TableError, match=r"size of '.*part-1\.parquet' can't be ") as caught:
        read(log)
    assert str(size) in str(caught.value)


def test_a_size_that_no_file_has_is_an_error_in_a_checkpoint_too(log):
    log.commit(*HEAD).checkpoint(*HEAD, add("part-1.parquet", size=-5))
    with pytest.raises(TableError, match=r"size of '.*part-1\.parquet' can't be -5"):
        read(log)


@pytest.mark.parametrize("path", ["a%00b", "a\0b", "\ud800.parquet", "x/\udfff"])
def test_a_path_that_no_file_has_is_an_error_that_names_it(log, path):
    text = "".join(json.dumps(action) + "\n" for action in (*HEAD, add(path)))
    (log.log / f"{0:020d}.json").write_text(text)
    with pytest.raises(TableError, match="no file can be called") as caught:
        read(log)
    str(caught.value).encode()


def test_a_removed_path_that_no_file_has_is_an_error_that_names_it(log):
    log.commit(*HEAD, add("a")).checkpoint(*HEAD, add("a"))
    (log.log / f"{1:020d}.json").write_text(json.dumps(remove("\ud800")))
    with pytest.raises(TableError, match=r"no file can be called '\\ud800'"):
        read(log)


@pytest.mark.parametrize("name", ["stats", "tags", "clusteringProvider"])
def test_half_a_character_in_what_is_said_of_a_file_is_an_error(log, name):
    value = {"zonal.layout": "\ud800"} if name == "tags" else "\ud800"
    (log.log / f"{0:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in (*HEAD, add("a", **{name: value}))))
    with pytest.raises(TableError):
        read(log)
