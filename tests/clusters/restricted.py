"""A Spark Connect session as Databricks gives it: few settings may be changed, and there is no JVM to call."""

from pyspark.errors import AnalysisException, PySparkAttributeError
from pyspark.sql.connect.session import SparkSession


class RestrictedConf:
    """Settings that can be read; what is set is refused, as servers without clusters of their own do."""

    def __init__(self, conf):
        self._conf = conf

    def get(self, *asked):
        return self._conf.get(*asked)

    def isModifiable(self, name):  # noqa: N802 - as Spark calls it
        return self._conf.isModifiable(name)

    def unset(self, name):
        raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available. SQLSTATE: 42K0I")

    def set(self, name, _):
        self.unset(name)


class RestrictedSession(SparkSession):
    """A session of which frames know the restrictions, too."""

    @property
    def conf(self):
        return RestrictedConf(super().conf)

    @property
    def sparkContext(self):  # noqa: N802
        raise PySparkAttributeError(
            "[JVM_ATTRIBUTE_NOT_SUPPORTED] Attribute `sparkContext` is not supported in Spark Connect as it depends "
            "on the JVM."
        )

    _jvm = _jsparkSession = sparkContext  # noqa: N815


def restrict(session):
    """Take a session's rights away, wherever it is referred to."""
    session.__class__ = RestrictedSession
    return session
