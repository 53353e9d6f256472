"""The Spark session: found or started, quiet, and left as it was; functions that travel; progress."""

import json
import os
import pickle
import subprocess
import sys
from functools import cache, cached_property

import pytest

from zonal.errors import ZonalError
from zonal.spark import session as session_module
from zonal.spark.progress import Stage, watch
from zonal.spark.session import is_connect, is_local_master, is_on_this_machine, settings, spark_session

BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def refusal(**asked):
    with pytest.raises(ZonalError) as caught, spark_session(**asked):
        pass
    return str(caught.value)


def test_without_pyspark_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert refusal().startswith("This needs Spark. Run: pip install 'zonal[spark]'. Or do without: ")


@pytest.mark.parametrize("version", ["3.5.8-amzn-0", "4.0.1", "4.1.0.dev3", "4.2.0-preview1", "10.0.1", "5.0"])
def test_new_versions_are_taken(version):
    session_module.check_version(version, "pyspark")


@pytest.mark.parametrize("version", ["3.4.4", "3.3.2-amzn-0", "2.4"])
def test_old_versions_are_refused(version):
    with pytest.raises(ZonalError, match=r"has version .*; zonal needs Spark 3\.5 or later"):
        session_module.check_version(version, "pyspark")


def test_a_master_and_a_server_exclude_each_other():
    told = "Say spark=Spark(master='local') or spark=Spark(remote='sc://host'), not both."
    assert refusal(master="local", remote="sc://host") == told


def test_memory_of_the_driver_is_bounded(monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**28}[name])
    assert session_module._driver_bytes() in range(2**30, 2**32 + 1)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**10}[name])
    assert session_module._driver_bytes() == 2**30


def test_a_remote_of_the_environment_is_put_away_where_a_master_is_asked_for(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    with session_module._environment("local[2]", None, {}):
        assert "SPARK_REMOTE" not in os.environ
    assert os.environ["SPARK_REMOTE"] == "sc://elsewhere"


def test_workers_here_run_this_python_and_elsewhere_the_users(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/elsewhere/python")
    with session_module._environment("spark://host:7077", None, {}):
        assert os.environ["PYSPARK_PYTHON"] == "/elsewhere/python"
    with session_module._environment("local[3]", None, {}):
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
    for master in ("spark://host:7077", "local[3]"):
        with session_module._environment(master, None, {"spark.pyspark.python": "/asked/python"}):
            assert os.environ["PYSPARK_PYTHON"] == "/asked/python", "PySpark reads the setting nowhere else"
    assert os.environ["PYSPARK_PYTHON"] == "/elsewhere/python"


@pytest.mark.spark
def test_a_running_session_is_used_as_it_is_and_left_running(spark):
    with spark_session() as found:  # pyspark may have put the JVM's session into an object of its own
        assert found is spark or found._jsparkSession.equals(spark._jsparkSession)
    with spark_session(session=spark) as given:
        assert given is spark
    assert spark.range(1).count() == 1
    assert not is_connect(spark)
    assert is_on_this_machine(spark)
    assert "leave out spark=Spark(master=…), or stop it" in refusal(master="local[1]")
    both = "leave out spark=Spark(remote=…), spark=Spark(conf=…)"
    assert both in refusal(remote="sc://host", conf={"a": "b"})
    assert "used as it is: leave out spark=Spark(conf=…)." in refusal(session=spark, conf={"a": "b"})


@pytest.mark.spark
def test_settings_are_restored_and_unknown_ones_ignored(spark):
    fixed = spark.conf.get("spark.sql.warehouse.dir")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Rome")
    wanted = {BATCH: "7", "spark.sql.session.timeZone": "UTC", "no.such": "1", "spark.sql.warehouse.dir": "/x"}
    with pytest.raises(KeyError), settings(spark, wanted):  # noqa: PT012 - restored although it fails
        assert spark.conf.get(BATCH) == "7"
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        assert spark.conf.get("spark.sql.warehouse.dir") == fixed
        raise KeyError
    assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Rome"
    assert spark.conf.get(BATCH, None) is None
    spark.conf.unset("spark.sql.session.timeZone")


STARTS = """
import json, os
from zonal.errors import ZonalError
from zonal.spark import jvm
from zonal.spark.session import spark_session
jvm.SLOW_SECONDS = 600  # a busy machine is no reason for a notice here
told = {}
try:
    with spark_session(conf={"spark.driver.memory": "2x"}):
        pass
except ZonalError as error:
    told["refused"] = str(error)
before = dict(os.environ)
with spark_session(master="local[1]", conf={"spark.sql.shuffle.partitions": "3"}) as spark:
    told["zone"] = spark.conf.get("spark.sql.session.timeZone")
    told["partitions"] = spark.conf.get("spark.sql.shuffle.partitions")
    def noisy(batches):
        import sys
        print("noise")
        print("noise", file=sys.stderr)
        yield from batches
    told["rows"] = spark.range(5).mapInArrow(noisy, "id long").count()
    try:
        spark.range(5).selectExpr("raise_error('on purpose')").collect()
    except Exception as error:
        told["failed"] = "on purpose" in str(error)
told["stopped"] = spark.sparkContext._jsc is None
told["changed"] = sorted(name for name in os.environ if os.environ[name] != before.get(name) and "PYTHON" in name)
print(json.dumps(told))
"""


@pytest.mark.spark
def test_a_started_session_prints_nothing_and_is_stopped(tmp_path):
    command = [sys.executable, "-c", STARTS]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert run.stderr == ""
    told = json.loads(run.stdout)  # one line, and nothing else
    assert told.pop("refused") == "Spark on 'local[*]' did not start: Invalid maximum heap size: -Xmx2x."
    assert told == {"zone": "UTC", "partitions": "3", "rows": 5, "failed": True, "stopped": True, "changed": []}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_local_masters_are_told_from_clusters(master):
    assert is_local_master(master)
    assert not is_local_master(f"spark://{master}")


class Shipped:
    """A class with all that cloudpickle finds hard."""

    @cached_property
    def half(self):
        return doubled(2) / 8


@cache
def doubled(number):
    return number * 2


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "zonal":
            raise ImportError("zonal is not installed here")
sys.meta_path.insert(0, Block())
"""


def run_without_zonal(pickled):
    code = f"{BLOCKED}\nimport pickle\nprint(pickle.loads(sys.stdin.buffer.read())())"
    return subprocess.run([sys.executable, "-c", code], check=False, input=pickled, capture_output=True, timeout=60)


@pytest.fixture
def as_if_ours(monkeypatch):
    """Code of this module, as if it were in zonal."""
    module = type(sys)("zonal.pretended")
    monkeypatch.setitem(sys.modules, "zonal.pretended", module)
    for name, value in (("Shipped", Shipped), ("doubled", doubled)):
        monkeypatch.setattr(value, "__module__", "zonal.pretended")
        setattr(module, name, value)


@pytest.mark.usefixtures("as_if_ours")
def test_carried_functions_run_where_zonal_is_not_installed():
    from pyspark import cloudpickle

    from zonal.spark.shipment import carried, shipped

    kind = Shipped
    assert run_without_zonal(cloudpickle.dumps(lambda: kind().half)).returncode == 1
    found = run_without_zonal(cloudpickle.dumps(carried(lambda: kind().half)))
    assert (found.stdout, found.stderr) == (b"0.5\n", b"")
    with shipped():
        found = run_without_zonal(cloudpickle.dumps(lambda: kind().half))
    assert (found.stdout, found.stderr) == (b"0.5\n", b"")


def test_shipping_nests_and_ends_with_errors():
    from pyspark import cloudpickle

    from zonal.errors import quoted
    from zonal.spark.shipment import shipped

    def is_by_value():
        return len(cloudpickle.dumps(quoted)) > 200

    assert not is_by_value()
    with shipped(by_value=False):
        assert not is_by_value()
    with shipped():
        with pytest.raises(KeyError), shipped():
            raise KeyError
        assert is_by_value()
    assert not is_by_value()


def test_cached_functions_are_pickled_by_name_as_ever():
    assert pickle.loads(pickle.dumps(doubled)) is doubled  # noqa: S301


@pytest.mark.spark
def test_progress_counts_the_tasks_of_each_stage(spark):
    reports = []
    with watch(spark, reports.append):
        rows = spark.range(100, numPartitions=3).selectExpr("cast(id % 2 AS int) AS p").repartitionById(2, "p")
        assert rows.mapInArrow(lambda batches: batches, "p int").toArrow().num_rows == 100
    assert {stage.tasks for stage in reports} == {3, 2}
    assert Stage(1, 3, 3) in reports
    for number in (1, 2):  # the last report may be missing
        done = [stage.done for stage in reports if stage.number == number]
        assert done == sorted(set(done)), "each report tells of more tasks than the one before"
    before = len(reports)
    spark.range(3).count()
    assert len(reports) == before
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


@pytest.mark.spark
def test_progress_keeps_the_callers_job_group_and_fails_no_job(spark):
    def broken(stage):
        raise ValueError(stage)

    spark.sparkContext.setJobGroup("mine", "my job")
    try:
        spark.range(4, numPartitions=4).count()
        reports = []
        with watch(spark, broken), watch(spark, reports.append):
            assert spark.range(5, numPartitions=5).count() == 5
        assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
        assert max(stage.tasks for stage in reports) == 5
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


class Forbidding:
    """The configuration of a server that lets only some settings be changed, and read."""

    def __init__(self, forbidden):
        self.forbidden = forbidden
        self.values = {"a": "1"}
        self.conf = self

    def check(self, name, kind):
        from pyspark.errors import AnalysisException

        if self.forbidden == (name, kind):
            raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available. SQLSTATE: 42K0I")

    def isModifiable(self, name):  # noqa: N802
        self.check(name, "ask")
        return True

    def get(self, name, default):
        self.check(name, "get")
        return self.values.get(name, default)

    def set(self, name, value):
        self.check(name, "set")
        self.values[name] = value

    def unset(self, name):
        del self.values[name]


@pytest.mark.parametrize("kind", ["ask", "get", "set"])
def test_a_server_that_forbids_a_setting_is_used_without(kind):
    pytest.importorskip("pyspark")
    spark = Forbidding(("b", kind))
    with settings(spark, {"a": "2", "b": "3", "c": "4"}):
        assert spark.values == {"a": "2", "c": "4"}
    assert spark.values == {"a": "1"}
