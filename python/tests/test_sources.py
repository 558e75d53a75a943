"""Distributions and traces."""

import gzip

import numpy as np
import pytest

import shortline as sl
from shortline import Distribution


def test_a_distribution_is_what_it_says():
    pareto = Distribution.bounded_pareto(1, 1000, 1.5)
    assert pareto == Distribution("bp:1,1000,1.5") and pareto != Distribution("exp:1")
    assert str(pareto) == "bp:1,1000,1.5" and repr(pareto) == "<Distribution bp:1,1000,1.5>"
    assert len({pareto, Distribution("bp:1,1000,1.5")}) == 1
    assert pareto.range == (1, 1000)
    shares = np.array([[0.1, 0.5], [0.9, 0.999]])
    np.testing.assert_allclose(pareto.cdf(pareto.quantile(shares)), shares, rtol=1e-12)
    assert float(pareto.share_above(1000)) == 0
    exponential = Distribution.exponential(3)
    assert (exponential.mean, exponential.c2) == (3, pytest.approx(1))
    assert Distribution.empirical([1, 1, 4]).mean == 2
    assert Distribution.uniform(0, 2).mean == Distribution.deterministic(1).mean == 1
    assert Distribution.weibull(2, 5).mean == pytest.approx(5)
    assert Distribution.lognormal_pareto(7.63, 1.001, 9020, 1e10, 1) == Distribution("surge-001")


def test_samples_are_the_distributions_and_repeat():
    pareto = Distribution("bp:1,1000,2.5")
    sizes = pareto.sample(100_000, seed=3)
    assert (sizes == pareto.sample(100_000, seed=3)).all()
    assert (sizes != pareto.sample(100_000, seed=4)).any()
    assert sizes.mean() == pytest.approx(pareto.mean, rel=0.05)
    assert sizes.min() >= 1 and sizes.max() <= 1000
    assert len(pareto.sample(0)) == 0


def test_a_log_is_read_and_what_it_left_out_is_told(log, tmp_path):
    with pytest.warns(sl.LeftOutWarning) as told:
        runs = sl.simulate(sl.Trace(log), rate="1mbit")
    lines = [str(warning.message) for warning in told]
    assert any("1 line could not be read" in line for line in lines)
    assert any("HEAD" in line and "errors 4xx" in line for line in lines)
    assert list(runs.left_out) == lines
    assert 3500 < runs["srpt"].requests == len(runs["srpt"].jobs) < 3700

    packed = tmp_path / "access.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    with pytest.warns(sl.LeftOutWarning):
        same = sl.simulate(sl.Trace(packed), rate="1mbit")
    assert (same["srpt"].jobs == runs["srpt"].jobs).all()
    with pytest.warns(sl.LeftOutWarning):
        sizes = Distribution.of_trace(log)
    assert sizes.mean == pytest.approx(runs["srpt"].jobs["size"].mean())


def test_the_wire_counts_beside_bodies(tmp_path):
    path = tmp_path / "day.csv"
    path.write_text("0,/a,1448\n1,/b,1449\n")
    jobs = sl.simulate(sl.Trace(path), rate="1mbit")["srpt"].jobs
    assert jobs["size"].tolist() == [1448 + 66 + 480, 1449 + 132 + 480]
    bare = sl.Trace(path, wire=sl.Wire(per_packet=0, per_request=0))
    assert sl.simulate(bare, rate="1mbit")["srpt"].jobs["size"].tolist() == [1448, 1449]


def test_a_trace_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        sl.Trace(tmp_path / "none.csv")
    path = tmp_path / "bad.csv"
    path.write_text("no,trace\n")
    with pytest.raises(ValueError, match="bad.csv: "):
        sl.simulate(sl.Trace(path), rate="1mbit")
    with pytest.raises(ValueError, match="segment 0"):
        sl.Trace(path, wire=sl.Wire(segment=0))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Distribution("pareto:1"), "bp:LOW,HIGH,ALPHA"),
        (lambda: Distribution.exponential(0), "MEAN"),
        (lambda: Distribution.empirical([]), "at least one|empty|no size"),
        (lambda: Distribution.empirical([1, -1]), "-1"),
        (lambda: Distribution("exp:1").quantile(2), "from 0 to 1"),
        (lambda: Distribution("exp:1").sample(-1), "at least 0"),
    ],
)
def test_what_is_no_distribution_is_a_value_error(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()
