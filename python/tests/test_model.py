"""Closed forms: known values, shapes, the simulator beside them, and what is refused."""

import math

import numpy as np
import pytest

import shortline as sl
from shortline import model

FORMS = [policy.name for policy in sl.policies() if policy.has_closed_form]


def test_an_m_m_1_at_half_load_has_its_known_means():
    known = {"srpt": 1.4254, "psjf": 1.5314, "sjf": 1.7127, "las": 2, "fair": 2, "fifo": 2}
    assert sorted(known) == sorted(FORMS)
    for policy, mean in known.items():
        assert float(model.sojourn_mean(policy, "exp:1", 0.5)) == pytest.approx(mean, abs=5e-5)


def test_processor_sharing_has_one_slowdown_for_all():
    loads = np.linspace(0.1, 0.9, 9)
    found = model.slowdown_mean("ps", "bp:1,1e4,1.5", loads)
    np.testing.assert_allclose(found, 1 / (1 - loads), rtol=1e-9)
    sizes = np.geomspace(1, 1e4, 12).reshape(3, 4)
    by_size = model.slowdown("fair", "bp:1,1e4,1.5", 0.75, sizes)
    assert by_size.shape == (3, 4)
    np.testing.assert_allclose(by_size, 4.0, rtol=1e-9)


def test_arrays_have_the_shape_of_what_was_asked():
    assert model.sojourn_mean("srpt", "exp:1", 0.5).shape == ()
    assert model.sojourn_mean("srpt", "exp:1", [[0.5], [0.6]]).shape == (2, 1)
    assert model.sojourn("srpt", "exp:1", 0.5, []).shape == (0,)
    np.testing.assert_array_equal(
        model.sojourn_mean("srpt", "exp:1", [0.5, 0.6]),
        [model.solve("srpt", "exp:1", load).sojourn_mean for load in (0.5, 0.6)],
    )


def test_an_analysis_has_single_sizes_and_buckets():
    found = model.solve("srpt", "bp:332.07,1e10,1.1", 0.9)
    assert found.policy == "srpt"
    assert found.points["size"][-1] == 1e10
    np.testing.assert_array_equal(
        model.sojourn("srpt", "bp:332.07,1e10,1.1", 0.9, found.points["size"]),
        found.points["sojourn"],
    )
    assert found.points["slowdown"][-1] == pytest.approx(found.slowdown_largest)
    assert found.by_percentile["slowdown_mean"].mean() == pytest.approx(found.slowdown_mean)
    assert (found.by_percentile["from"][1:] == found.by_percentile["to"][:-1]).all()
    assert math.isinf(model.solve("fifo", "exp:1", 0.5).slowdown_mean)


@pytest.mark.parametrize("policy", FORMS)
def test_the_simulator_agrees(policy):
    source = sl.Steady("exp:1250", load=0.7, jobs=50_000)
    # At this rate the mean size takes a second.
    found = sl.simulate(source, rate=10_000, policies=policy, keep_jobs=False, stretch=False)
    result = found[policy]
    exact = float(model.sojourn_mean(policy, "exp:1", 0.7))
    assert abs(result.sojourn_mean - exact) < 2 * result.sojourn_mean_half_width


def test_a_load_that_alternates_is_approximated():
    srpt = model.alternating("srpt", "bp:900,2e6,1.1", "w1", "10mbit")
    fair = model.alternating("fair", "bp:900,2e6,1.1", (25, 25, 0.2, 1.2), 10e6)
    assert srpt.sojourn_mean < fair.sojourn_mean < 1
    assert srpt.slowdown_mean < fair.slowdown_mean
    # Times are seconds: the largest of 2e6 bytes takes 1.6 s alone.
    assert fair.points["sojourn"][-1] / fair.points["slowdown"][-1] == pytest.approx(1.6)


def test_boost_has_the_lighter_tail():
    found = model.tail("exp:1", 0.5)
    assert found.decay_rate == pytest.approx(0.5)
    assert 0 < found.boost < found.fifo
    assert found.fifo == pytest.approx(1)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: model.sojourn_mean("srpt", "exp:1", 1.0), "above 0 and below 1"),
        (lambda: model.sojourn_mean("srpt", "exp:1", [0.5, -1]), "load -1"),
        (lambda: model.sojourn_mean("gittins", "exp:1", 0.5), "no closed form is known; want"),
        (lambda: model.sojourn_mean("fifo", "bp:1,inf,1.5", 0.5), "second moment is infinite"),
        (lambda: model.sojourn_mean("srpt", "bp:1,inf,0.9", 0.5), "finite mean"),
        (lambda: model.sojourn("srpt", "exp:1", 0.5, [1, 0]), "size 0: want finite and above 0"),
        (lambda: model.alternating("las", "exp:1", "w1", "10mbit"), "want srpt or fair"),
        (lambda: model.tail("bp:1,inf,1.5", 0.5), "not light"),
    ],
)
def test_what_has_no_answer_is_a_value_error(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()
