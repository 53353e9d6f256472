"""Options of `cluster` by their plain names, for tests that mix many of them."""

from zonal.display import Display
from zonal.rewriting.budget import Budget
from zonal.rewriting.new_files import NewFiles
from zonal.spark.place import Spark

VALUES = {"files": NewFiles, "budget": Budget, "display": Display, "spark": Spark}


def grouped(**asked):
    """Put each option into the value to which it belongs; others stay as they are."""
    options = dict(asked)
    for name, kind in VALUES.items():
        fields = {each: options.pop(each) for each in kind.__dataclass_fields__ if each in options}
        if fields:
            options[name] = kind(**fields)
    return options
