"""Bottom-up folds of predicates, on a list instead of the interpreter's stack: they may be thousands deep."""

from collections.abc import Callable
from typing import Any, TypeVar

Node = TypeVar("Node")
Result = TypeVar("Result")


def fold(predicate: Node, leaf: Callable[[Node], Result], join: Callable[[Any, list[Result]], Result]) -> Result:
    """Fold a predicate, bound or not: `leaf` gives the result of a leaf, `join` of an AND or OR from its parts'.

    >>> from zonal.predicates.bound import All, Nulls, Some
    >>> fold(All((Nulls("a"), Some((Nulls("b"), Nulls("c"))))), lambda leaf: 1, lambda node, parts: sum(parts))
    3
    """
    done: dict[int, Result] = {}
    waiting: list[Any] = [predicate]
    while waiting:
        node = waiting[-1]
        parts = getattr(node, "parts", None)  # ANDs and ORs alone have parts
        if parts is None:
            done[id(node)] = leaf(node)
        elif missing := [part for part in parts if id(part) not in done]:
            waiting.extend(missing)
            continue
        else:
            done[id(node)] = join(node, [done[id(part)] for part in parts])
        waiting.pop()
    return done[id(predicate)]
