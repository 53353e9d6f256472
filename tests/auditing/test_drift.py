"""When an audit is an alert."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zonal.auditing.drift import Alerts, drift_of
from zonal.auditing.savings import Saving
from zonal.errors import ZonalError

RATIOS = st.floats(0, 1)
PAST = st.lists(st.one_of(st.none(), RATIOS), max_size=15)
LIMITS = st.builds(
    Alerts, st.one_of(st.none(), RATIOS), st.one_of(st.none(), st.floats(0, 5)), st.integers(min_value=1, max_value=12)
)


UNKNOWN_SAVING = Saving()


def alerts_of(ratio, past, limits, saving=UNKNOWN_SAVING):
    return drift_of(ratio, past, limits, saving).alerts


def kinds(ratio, past, limits=Alerts()):  # noqa: B008 - frozen
    return [alert.kind for alert in alerts_of(ratio, past, limits)]


def test_a_ratio_above_the_limit_is_an_alert_and_one_at_the_limit_is_none():
    assert kinds(0.3, []) == []
    assert kinds(0.31, []) == ["ratio"]
    (alert,) = alerts_of(0.31, [], Alerts())
    assert (alert.value, alert.limit) == (0.31, 0.3)
    assert alert.text == "Queries read 31% of the files in partitions that might match: more than the limit of 30%."


def test_a_ratio_half_as_much_again_as_the_best_of_the_last_is_an_alert():
    past = [0.2, 0.1, 0.15]
    assert kinds(0.15, past) == [], "exactly half as much again is within the limit"
    assert kinds(0.16, past) == ["worse"]
    (alert,) = alerts_of(0.16, past, Alerts())
    assert alert.limit == pytest.approx(0.15)
    assert "1.6 times as much as in the best of the last 3 audits (10%)" in alert.text


def test_only_the_last_audits_are_compared_with():
    past = [0.01] + [0.2] * 10
    assert kinds(0.25, past) == []
    assert kinds(0.25, past, Alerts(window=11)) == ["worse"]


def test_audits_without_a_ratio_take_no_place_in_the_window():
    assert kinds(0.25, [0.1, None, None], Alerts(window=1)) == ["worse"]


def test_small_differences_are_no_drift_even_where_they_are_many_times_as_much():
    assert kinds(0.009, [0.0001]) == []
    assert kinds(0.0101, [0.0001]) == ["worse"]
    assert kinds(0.009, [0.0]) == []
    (alert,) = alerts_of(0.01, [0.0], Alerts())
    assert alert.kind == "worse"
    assert "the last audit (0%)" in alert.text


def test_both_limits_may_be_crossed():
    assert kinds(0.9, [0.1]) == ["ratio", "worse"]


def test_without_queries_that_can_be_helped_there_is_no_alert():
    assert kinds(None, [0.1]) == []


def test_limits_can_be_switched_off():
    assert kinds(0.9, [0.1], Alerts(ratio=None)) == ["worse"]
    assert kinds(0.9, [0.1], Alerts(worse=None)) == ["ratio"]
    assert kinds(0.9, [0.1], Alerts(None, None)) == []


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Alerts(ratio=1.5), "alerts=Alerts(ratio=1.5) is no limit: give a number from 0 to 1"),
        (Alerts(ratio=float("nan")), "alerts=Alerts(ratio=nan) is no limit"),
        (Alerts(worse=-0.1), "alerts=Alerts(worse=-0.1) is no limit"),
        (Alerts(worse=float("inf")), "alerts=Alerts(worse=inf) is no limit"),
        (Alerts(window=0), "alerts=Alerts(window=0) leaves no audit"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits, told):
    with pytest.raises(ZonalError, match=re.escape(told)):
        limits.check()
    with pytest.raises(ZonalError, match=re.escape(told)):
        alerts_of(0.1, [], limits)


@pytest.mark.parametrize(("ratio", "past"), [(float("nan"), []), (-0.1, []), (0.1, [float("inf")]), (None, [-1.0])])
def test_what_is_no_ratio_is_refused(ratio, past):
    with pytest.raises(ZonalError, match="is not a ratio of files"):
        alerts_of(ratio, past, Alerts())


@given(RATIOS, RATIOS, PAST, LIMITS)
def test_a_higher_ratio_never_has_fewer_alerts(one, other, past, limits):
    low, high = sorted([one, other])
    assert set(kinds(low, past, limits)) <= set(kinds(high, past, limits))


@given(RATIOS, PAST, LIMITS)
def test_alerts_follow_their_definition(ratio, past, limits):
    last = [each for each in past if each is not None][-limits.window :]
    wanted = []
    if limits.ratio is not None and ratio > limits.ratio:
        wanted.append("ratio")
    if limits.worse is not None and last:
        best = min(last)
        if ratio > best * (1 + limits.worse) and ratio - best >= 0.01 - 1e-12:
            wanted.append("worse")
    assert kinds(ratio, past, limits) == wanted


@given(RATIOS, LIMITS)
def test_a_table_that_stays_as_it_is_never_drifts(ratio, limits):
    assert "worse" not in kinds(ratio, [ratio] * 5, limits)


def test_a_high_ratio_is_tolerated_where_nothing_can_be_saved():
    for saving in (Saving(anew=0.05), Saving(outside=0.0), Saving(anew=0.09, outside=0.09)):
        found = drift_of(0.4, [], Alerts(), saving)
        assert found.alerts == ()
        assert (found.tolerated.kind, found.tolerated.limit) == ("ratio", 0.3)
    for saving in (Saving(), Saving(anew=0.1), Saving(outside=0.5), Saving(anew=0.0, outside=0.2)):
        found = drift_of(0.4, [], Alerts(), saving)
        assert [alert.kind for alert in found.alerts] == ["ratio"], "something can be done, or nobody knows"
        assert found.tolerated is None
    assert drift_of(0.2, [], Alerts(), Saving(anew=0.0)).tolerated is None


def test_what_has_become_worse_is_an_alert_whatever_can_be_saved():
    found = drift_of(0.4, [0.1], Alerts(), Saving(anew=0.0))
    assert [alert.kind for alert in found.alerts] == ["worse"]
    assert found.tolerated.kind == "ratio"
