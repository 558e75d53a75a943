"""The package and the command give the same numbers, to the last digit."""

import dataclasses
import json
import subprocess
import warnings

import numpy as np
import pytest

import shortline as sl
from shortline import model

# What the command names as the package does, if it is a number.
SCALARS = [
    item.name
    for item in dataclasses.fields(sl.PolicyResult)
    if item.name.startswith(("sojourn_", "slowdown_", "number_mean", "requests", "failed"))
    and "over_time" not in item.name
    and "complementary" not in item.name
]
TABLES = ["by_size", "by_percentile", "by_nines"]


def command(program, *arguments):
    ran = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def simulated(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.LeftOutWarning)
        warnings.simplefilter("ignore", sl.DoubtWarning)
        return sl.simulate(*arguments, **settings)


def assert_same(found, wanted):
    assert list(found) == [result["policy"] for result in wanted["results"]]
    assert list(found.warnings) == wanted.get("warnings", [])
    for result in wanted["results"]:
        mine = found[result["policy"]]
        assert len(SCALARS) > 12
        for name in SCALARS:
            assert getattr(mine, name) == result[name], name
        assert dataclasses.asdict(mine.stretch) == result["stretch"]
        for name in TABLES:
            table = getattr(mine, name)
            assert len(table) == len(result[name]) > 0
            for field in table.dtype.names:
                assert table[field].tolist() == [row[field] for row in result[name]], field
        over_time = [list(row) for row in mine.number_over_time.tolist()]
        assert over_time == result["number_over_time"]


def test_a_trace(program, log):
    wanted = command(
        program, "sim", "--trace", str(log), "--rate", "1mbit", "--policy", "srpt,fair,fifo,boost"
    )
    found = simulated(sl.Trace(log), rate="1mbit", policies="srpt,fair,fifo,boost")
    assert_same(found, wanted)


def test_a_trace_that_is_spread_at_random(program, log):
    arguments = ("--trace", str(log), "--rate", "1mbit", "--policy", "srpt", "--seed", "9")
    found = simulated(sl.Trace(log, spread_seed=9), rate=1e6, policies="srpt", seed=9)
    assert_same(found, command(program, "sim", *arguments))


def test_random_jobs(program):
    wanted = command(
        program, "sim", "--dist", "bp:332,1e6,1.3", "--load", "0.8", "--rate", "10mbit",
        "--jobs", "20000", "--seed", "5", "--policy", "srpt,fair,gittins,bands:1KB,9KB",
        "--estimate-sigma", "0.5", "--aging", "5", "--arrivals-c2", "2",
    )  # fmt: skip
    found = simulated(
        sl.Steady("bp:332,1e6,1.3", load=0.8, jobs=20_000, arrivals_c2=2),
        rate="10mbit",
        seed=5,
        policies="srpt,fair,gittins,bands:1KB,9KB",
        estimate_sigma=0.5,
        aging=5,
    )
    assert_same(found, wanted)


def test_loads_over_time(program):
    wanted = command(program, "sim", "--workload", "nasa:w2", "--rate", "2mbit", "--seconds", "40")
    assert_same(simulated(sl.Workload("nasa:w2", seconds=40), rate="2mbit"), wanted)
    wanted = command(
        program, "sim", "--dist", "exp:5000", "--workload", "w2", "--rate", "2mbit",
        "--seconds", "40", "--users", "20,100/1", "--policy", "shares,fair",
    )  # fmt: skip
    source = sl.Alternating("exp:5000", schedule="w2", seconds=40)
    found = simulated(source, rate="2mbit", policies="shares,fair", users="20,100/1")
    assert_same(found, wanted)


def test_formulas(program):
    loads = [0.3, 0.8, 0.95]
    policies = ["srpt", "psjf", "las", "fair"]
    wanted = command(
        program, "model", "--dist", "bp:332.07,1e10,1.1", "--load", "0.3,0.8,0.95",
        "--policy", ",".join(policies),
    )  # fmt: skip
    sizes = sl.Distribution("bp:332.07,1e10,1.1")
    for policy in policies:
        results = [one for one in wanted["results"] if one["policy"] == policy]
        # The command counts in mean sizes.
        found = model.sojourn_mean(policy, sizes, loads) / sizes.mean
        assert found.tolist() == [one["sojourn_mean"] for one in results]
        slowdowns = model.slowdown_mean(policy, sizes, loads)
        assert slowdowns.tolist() == [one["slowdown_mean"] for one in results]
        points = model.solve(policy, sizes, 0.8).points
        assert points["slowdown"].tolist() == [point["slowdown"] for point in results[1]["points"]]


def test_the_test_would_see_a_difference(program, log):
    arguments = ("--trace", str(log), "--rate", "1mbit", "--policy", "srpt")
    wanted = command(program, "sim", *arguments)
    other = simulated(sl.Trace(log, wire=sl.Wire(per_request=481)), rate="1mbit", policies="srpt")
    with pytest.raises(AssertionError):
        assert_same(other, wanted)
    assert np.isfinite(other["srpt"].sojourn_mean)
