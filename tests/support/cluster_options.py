"""Options of verbs by the names of their fields, for tests that mix many of them."""

from zonal.auditing.drift import Alerts
from zonal.display import Display
from zonal.rewriting.new_files import NewFiles
from zonal.rewriting.scope import Scope
from zonal.spark.place import Spark
from zonal.study.sampling import Sampling

VALUES = {"files": NewFiles, "scope": Scope, "display": Display, "spark": Spark}
RENAMED = {
    "sampling": (Sampling, {"sample": "queries", "sample_rows": "rows", "seed": "seed", "look": "look"}),
    "alerts": (Alerts, {"alert_ratio": "ratio", "alert_worse": "worse", "alert_window": "window"}),
}


def grouped(**asked):
    """Put each option into the value to which it belongs; others stay as they are."""
    options = dict(asked)
    for name, kind in VALUES.items():
        fields = {each: options.pop(each) for each in kind.__dataclass_fields__ if each in options}
        if fields:
            options[name] = kind(**fields)
    for name, (kind, names) in RENAMED.items():
        fields = {part: options.pop(each) for each, part in names.items() if each in options}
        if fields:
            options[name] = kind(**fields)
    return options
