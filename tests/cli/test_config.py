"""What a file of tables says, and what is refused in it."""

import sys
from contextlib import suppress
from dataclasses import fields
from datetime import datetime, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zonal.auditing.drift import Alerts
from zonal.cli import config
from zonal.cli.config import read_config
from zonal.display import Display
from zonal.errors import ZonalError
from zonal.study.audited_version import Auditing
from zonal.study.sampling import Sampling
from zonal.workload import view_files as viewfiles
from zonal.workload.logs import Logs

WHOLE = """
database = "sqlite:///history.db"

[defaults]
queries = ["logs/"]
alert_ratio = 0.4
timezone = "Europe/Rome"

[[tables]]
table = "delta:/lake/events"

[[tables]]
table = "iceberg:shop.orders@main"
catalog = "prod"
names = ["orders", "shop.orders"]
queries = ["logs/orders.jsonl", "/var/log/queries.sql"]
dialect = "trino"
timezone = "UTC"
views = { recent = "views/recent.sql" }
half_life_days = 30
cap = false
since = "7d"
sample = 200
sample_rows = 1000
metadata_only = true
hide_literals = true
alert_ratio = 0.2
alert_worse = false
alert_window = 5

[tables.storage_options]
"s3.region" = "eu-south-1"
"""


@pytest.fixture
def written(tmp_path):
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "recent.sql").write_text("SELECT * FROM orders WHERE ts > 7")

    def write(text, name="tables.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def one(text):
    return f'[[tables]]\ntable = "delta:/lake/events"\nqueries = ["logs"]\n{text}\n'


def test_a_table_says_all_that_an_audit_can_be_told(written, tmp_path):
    found = read_config(written(WHOLE))
    events, orders = found.tables
    assert found.database == f"sqlite:///{tmp_path}/history.db"
    assert orders.table == "iceberg:shop.orders@main"
    now = datetime(2026, 11, 16, tzinfo=timezone.utc)
    assert orders.logs(now) == Logs(
        (f"{tmp_path}/logs/orders.jsonl", "/var/log/queries.sql"), ("orders", "shop.orders"), "trino", "UTC",
        {"recent": "SELECT * FROM orders WHERE ts > 7"}, 30.0, None, datetime(2026, 11, 9, tzinfo=timezone.utc),
    )  # fmt: skip
    assert orders.auditing(seed=3) == Auditing(
        Sampling(200, 1000, 3, look=False), Alerts(0.2, None, 5), Display(picture=False, hide_literals=True)
    )
    assert (orders.catalog, dict(orders.storage_options)) == ("prod", {"s3.region": "eu-south-1"})
    assert events.table == "delta:/lake/events"


def test_defaults_are_for_tables_that_say_nothing_else(written, tmp_path):
    events = read_config(written(WHOLE)).tables[0]
    assert events.logs() == Logs((f"{tmp_path}/logs",), timezone="Europe/Rome")
    assert events.auditing() == Auditing(alerts=Alerts(0.4), display=Display(picture=False))
    assert (events.catalog, dict(events.storage_options)) == (None, {})


def test_what_is_left_out_is_as_the_verb_has_it(written):
    (table,) = read_config(written(one(""))).tables
    assert table.auditing() == Auditing(display=Display(picture=False))
    assert table.logs() == Logs(table.queries)


def test_every_key_of_a_table_can_be_read():
    assert set(config._READERS) == {each.name for each in fields(config.TableConfig)}


def test_the_example_of_the_documentation_can_be_read(written, tmp_path):
    (tmp_path / "views" / "recent.sql").write_text("SELECT 1")
    lines = [line[4:] for line in config.__doc__.splitlines() if line.startswith("    ") or not line]
    found = read_config(written("\n".join(lines)))
    assert [each.table for each in found.tables] == ["delta:/lake/events", "iceberg:shop.orders"]
    assert found.tables[1].auditing().alerts == Alerts(0.2, 0.5, 10)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("delta:lake/events", "delta:{folder}/lake/events"),
        ("lake/events", "{folder}/lake/events"),
        ("parquet:lake", "parquet:{folder}/lake"),
        ("/lake/events", "/lake/events"),
        ("s3://bucket/events", "s3://bucket/events"),
        ("delta:s3://bucket/events@7", "delta:s3://bucket/events@7"),
        ("iceberg:shop.orders", "iceberg:shop.orders"),
        ("iceberg:t/metadata/v1.metadata.json@7", "iceberg:{folder}/t/metadata/v1.metadata.json@7"),
    ],
)
def test_paths_are_relative_to_the_files_folder_wherever_it_is_read_from(written, tmp_path, monkeypatch, name, wanted):
    path = written(f'[[tables]]\ntable = "{name}"\nqueries = ["../logs"]')
    monkeypatch.chdir(tmp_path.parent)
    (table,) = read_config(path.relative_to(tmp_path.parent)).tables
    assert table.table == wanted.format(folder=tmp_path)
    assert table.queries == (f"{tmp_path}/../logs",)


@pytest.mark.parametrize("since", ["2026-01-02", "2026-01-02T00:00:00Z", '"2026-01-02"', "2026-01-02T01:00:00+01:00"])
def test_since_may_be_a_date_or_a_time_of_toml(written, since):
    (table,) = read_config(written(one(f"since = {since}"))).tables
    assert table.logs().since == datetime(2026, 1, 2, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no tables: write [[tables]]"),
        ("tables = []", "names no tables"),
        ("tables = 3", "names no tables"),
        ("tables = [3]", "table 1 is a number: it must be a table of keys."),
        ("databse = 'x'\n" + one(""), "has an unknown key 'databse'. Did you mean 'database'?"),
        ("database = 3\n" + one(""), "database is a number: it must be a text."),
        ("webhook = 3\n" + one(""), "webhook is a number: it must be a text."),
        ("[defaults]\ntable = 'x'\n" + one(""), "[defaults] has an unknown key 'table'."),
        ("[defaults]\nalert_ratios = 1\n" + one(""), "unknown key 'alert_ratios'. Did you mean 'alert_ratio'?"),
        ("[defaults]\ncap = 'x'\n" + one(""), "[defaults]: cap is a text: it must be a number."),
        ("defaults = 3\n" + one(""), "[defaults] is a number: it must be a table of keys."),
        ("[[tables]]\nqueries = ['x']", "table 1 has no table: give it, as in table = \"delta:/lake/events\"."),
        ("[[tables]]\ntable = 'x'", "table 1 ('x') has no queries: give it, as in queries = [\"logs/\"]."),
        ("[[tables]]\ntable = 'x'\nqueries = []", "table 1 ('x') has no queries"),
        (one("") + "[[tables]]\ntable = 'x'\nquerys = ['y']", "table 2 ('x') has an unknown key 'querys'. Did"),
        (one("\x00"), "is no TOML"),
        (one("names = 'x'"), "table 1 ('delta:/lake/events'): names is a text: it must be a list of texts"),
        (one("names = ['x', 3]"), "names, number 2, is a number: it must be a text."),
        (one("names = ['']"), "names, number 1, is empty"),
        (one("dialect = 'trinno'"), "('delta:/lake/events'): Unknown SQL dialect 'trinno'. Did you mean 'trino'?"),
        (one("timezone = 'Mars/North'"), "Unknown time zone 'Mars/North'"),
        (one("half_life_days = 0"), "half_life_days is 0: it must be above 0."),
        (one("half_life_days = true"), "half_life_days is true or false: it must be a number."),
        (one("half_life_days = nan"), "half_life_days is no number that can be reckoned with."),
        (one(f"half_life_days = {'9' * 400}"), "half_life_days is no number that can be reckoned with."),
        (one("cap = 2"), "cap is 2: it must be above 0 and at most 1"),
        (one("cap = true"), "cap is true or false: it must be a number, or false to switch it off."),
        (one("since = 'yesterday'"), "'yesterday' is no time"),
        (one("since = 12:30:00"), "since is a date or time: it must be a text."),
        (one("sample = 1.5"), "sample is a number: it must be a whole number."),
        (one("sample = 0"), "sample=0 is not a positive number."),
        (one(f"alert_window = {'9' * 400}"), "alert_window is no number"),
        (one("sample_rows = false"), "sample_rows is true or false: it must be a whole number."),
        (one("metadata_only = 1"), "metadata_only is a number: it must be true or false."),
        (one("alert_ratio = 30"), "alert_ratio=30.0 is no limit: give a number from 0 to 1"),
        (one("alert_worse = -1"), "alert_worse=-1.0 is no limit"),
        (one("alert_window = 0"), "alert_window=0 leaves no audit"),
        (one("catalog = ''"), "catalog is empty"),
        (one("views = ['x']"), "views is a list: it must be a table of texts"),
        (one("views = { v = 'none.sql' }"), "views.'v' can't be read from"),
        (one("views = { v = 'views' }"), "Is a directory"),
        (one("storage_options = { key = 3 }"), "storage_options.'key' is a number: it must be a text."),
        (one("") * 2, "table 2 ('delta:/lake/events') is table 1 again: leave one out."),
        (one("") + "[[tables]]\ntable = '/lake/events/'\nqueries = ['x']", "table 2 ('/lake/events') is table 1 again"),
        ("a = " + "[" * 100_000, "is no TOML"),
        ("x = 1\nx = 2", "is no TOML: Cannot overwrite a value"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"#" * (config.MOST_BYTES + 1), "has more than 1,000,000 bytes"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_file_table_and_key(written, text, told):
    with pytest.raises(ZonalError) as caught:
        read_config(written(text))
    assert told in str(caught.value)
    assert "tables.toml" in str(caught.value)


def test_the_same_name_in_two_catalogs_is_two_tables(written):
    two = "".join(f"[[tables]]\ntable = 'iceberg:a.b'\nqueries = ['x']\ncatalog = '{name}'\n" for name in "pq")
    assert len(read_config(written(two)).tables) == 2


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ZonalError, match=r"none\.toml' can't be read: No such file or directory\."):
        read_config(tmp_path / "none.toml")


def test_a_view_that_is_no_text_or_too_long_is_told(written, tmp_path, monkeypatch):
    path = written(one("views = { v = 'v.sql' }"))
    (tmp_path / "v.sql").write_bytes(b"\xff")
    with pytest.raises(ZonalError, match=r"views\.'v' can't be read from .*it is not text in UTF-8"):
        read_config(path)
    (tmp_path / "v.sql").write_text("SELECT 12345")
    monkeypatch.setattr(viewfiles, "MOST_BYTES", 5)
    with pytest.raises(ZonalError, match=r"views\.'v' has more than 5 bytes"):
        read_config(path)


def test_secrets_are_in_no_text(written):
    text = 'database = "postgresql://me:hunter2@db/lake"\nwebhook = "https://x/hunter4"\n'
    found = read_config(written(text + one('storage_options = { key = "hunter3" }')))
    assert (found.database, found.webhook) == ("postgresql://me:hunter2@db/lake", "https://x/hunter4")
    assert "hunter" not in repr(found)
    with pytest.raises(ZonalError) as caught:
        read_config(written('database = "postgresql://me:hunter2@db:x/lake"\n' + one("")))
    assert "hunter" not in str(caught.value)


VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec="ascii", categories=["L", "N"]))),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=200)
@given(st.sampled_from(sorted(config._READERS)), VALUES)
def test_any_value_is_read_or_refused_as_an_error_of_zonal(tmp_path_factory, key, value):
    def toml(value):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return f"[{', '.join(map(toml, value))}]"
        return f'"{value}"' if isinstance(value, str) else str(value)

    rest = {"table": '"t"', "queries": '["q"]', key: toml(value)}
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text("[[tables]]\n" + "".join(f"{name} = {text}\n" for name, text in rest.items()))
    with suppress(ZonalError):
        (table,) = read_config(path).tables
        assert table.logs().paths
        assert table.auditing().alerts.window >= 1


def test_the_parser_is_the_one_of_this_python():
    assert config.tomllib.__name__ == ("tomllib" if sys.version_info >= (3, 11) else "tomli")
