"""Simulations: known schedules, what is kept of jobs, what is refused, and Ctrl-C."""

import subprocess
import sys

import numpy as np
import pytest

import shortline as sl

#: At this rate a byte takes a microsecond.
RATE = 8e6
#: Four jobs of 15, 10, 10 and 10 ms.
KNOWN = sl.Jobs(arrival=[0, 0, 0.010, 0.020], size=[15_000, 10_000, 10_000, 10_000])
SMALL = sl.Steady("exp:1250", load=0.7, jobs=20_000)


def test_a_known_schedule_gives_its_known_times():
    runs = sl.simulate(KNOWN, rate=RATE, policies=["srpt", "fsp", "fifo"])
    assert list(runs) == ["srpt", "fsp", "fifo"]
    ends = {name: found.jobs["end"] for name, found in runs.items()}
    np.testing.assert_allclose(ends["srpt"], [0.045, 0.010, 0.020, 0.030], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ends["fsp"], [0.025, 0.010, 0.035, 0.045], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ends["fifo"], [0.015, 0.025, 0.035, 0.045], rtol=0, atol=1e-12)
    starts = {name: found.jobs["start"] for name, found in runs.items()}
    np.testing.assert_allclose(starts["srpt"], [0.030, 0, 0.010, 0.020], rtol=0, atol=1e-12)
    np.testing.assert_allclose(starts["fifo"], [0, 0.015, 0.025, 0.035], rtol=0, atol=1e-12)
    jobs = runs["srpt"].jobs
    assert jobs["alone"].tolist() == [0.015, 0.010, 0.010, 0.010]
    assert jobs["arrival"].tolist() == [0, 0, 0.010, 0.020]
    assert jobs["size"].tolist() == [15_000, 10_000, 10_000, 10_000]
    assert not jobs["failed"].any()
    assert runs["srpt"].sojourn_mean == 0.01875
    assert runs["srpt"].slowdown_mean == 1.5


def test_the_jobs_add_up_to_the_summary():
    runs = sl.simulate(SMALL, rate=RATE, policies="srpt,fair,las", replications=3)
    for name, found in runs.items():
        jobs = found.jobs
        assert len(jobs) == found.requests == 60_000
        assert jobs["replication"].tolist() == [0] * 20_000 + [1] * 20_000 + [2] * 20_000
        for replication in range(3):
            arrivals = jobs["arrival"][jobs["replication"] == replication]
            assert (np.diff(arrivals) >= 0).all()
        assert jobs["sojourn"].mean() == pytest.approx(found.sojourn_mean, rel=1e-9), name
        assert jobs["slowdown"].mean() == pytest.approx(found.slowdown_mean, rel=1e-9), name
        assert jobs["slowdown"].max() == pytest.approx(found.slowdown_max, rel=1e-9), name
        assert (jobs["slowdown"] >= 1 - 1e-9).all()
        waits = jobs["start"] - jobs["arrival"]
        assert (waits >= 0).all() and (jobs["end"] - jobs["start"] > 0).all()
        assert (waits == 0).all() == (name != "srpt"), name
        assert found.by_percentile["jobs"].sum() == pytest.approx(60_000)
        assert len(found.by_percentile) == 200
        above = jobs["sojourn"] > found.sojourn_p99
        assert above.mean() == pytest.approx(0.01, abs=0.001)
    # All policies have the very same jobs.
    assert (runs["srpt"].jobs["size"] == runs["fair"].jobs["size"]).all()
    assert runs["srpt"].sojourn_mean < runs["fair"].sojourn_mean


def test_a_seed_gives_the_same_numbers_again():
    def jobs(seed: int) -> np.ndarray:
        return sl.simulate(SMALL, rate=RATE, policies="srpt", seed=seed)["srpt"].jobs

    assert (jobs(1) == jobs(1)).all()
    assert (jobs(1)["size"] != jobs(2)["size"]).any()


def test_the_arrays_are_the_callers():
    jobs = sl.simulate(KNOWN, rate=RATE, policies="srpt")["srpt"].jobs
    jobs["size"] = 1
    assert jobs["size"].tolist() == [1] * 4


def test_jobs_need_not_be_kept():
    found = sl.simulate(SMALL, rate=RATE, policies="srpt", keep_jobs=False)["srpt"]
    assert found.requests == 80_000
    with pytest.raises(ValueError, match="want simulate.*keep_jobs=True"):
        found.jobs


def test_names_of_policies_are_those_of_the_command():
    runs = sl.simulate(KNOWN, rate=RATE, policies="scf,ps,bands:1KB,9KB,bands:4")
    assert list(runs) == ["srpt", "fair", "bands:1kB,9kB", "bands:4"]
    assert runs["scf"] is runs["srpt"]
    assert runs["bands:1KB,9KB"] is runs["bands:1kB,9kB"]
    with pytest.raises(KeyError, match="was not simulated; have srpt, fair"):
        runs["las"]
    assert "srpt: 0.0" in repr(runs)


def test_every_policy_can_be_simulated():
    names = [policy.name for policy in sl.policies()]
    assert len(names) == len(set(names)) > 10
    for policy in sl.policies():
        clients = "1mbit/100ms*0.5,10mbit/10ms" if policy.needs == "path" else ()
        runs = sl.simulate(KNOWN, rate=RATE, policies=policy.name, clients=clients)
        assert runs[policy.name].requests == 4
        assert policy.summary
        for alias in policy.aliases:
            assert runs[alias] is runs[policy.name]


def test_settings_do_what_they_say():
    def mean(**settings: object) -> float:
        return sl.simulate(KNOWN, rate=RATE, policies="srpt", **settings)["srpt"].sojourn_mean

    assert mean(setup=0.001) > mean()
    assert mean(start_delay=0.5) == pytest.approx(mean() + 0.5)
    assert mean(servers=2) < mean()
    assert mean(warmup=1) != mean()
    assert sl.simulate(KNOWN, rate="8mbit", policies="srpt")["srpt"].sojourn_mean == mean()
    given_up = sl.simulate(KNOWN, rate=RATE, policies="fifo", abort_after=0.02)["fifo"]
    assert given_up.failed == given_up.jobs["failed"].sum() > 0
    assert (given_up.jobs["sojourn"][given_up.jobs["failed"]] == 0.02).all()
    hasty = sl.simulate(KNOWN, rate=RATE, policies="fifo", abort_after=0.004)["fifo"]
    # The second of two that come at once leaves before its turn.
    assert np.isnan(hasty.jobs["start"]).tolist() == [False, True, False, False]
    gate = sl.simulate(KNOWN, rate=RATE, policies="fifo,fair", backend_capacity=0.01)
    assert gate["fifo"].requests == 4
    users = sl.simulate(SMALL, rate=RATE, policies="shares", users="20,100/1")["shares"]
    assert users.by_users["requests"].sum() == users.requests
    queues = sl.simulate(
        SMALL, rate=RATE, policies="srpt", servers=4, dispatch="least-work", guardrails=2
    )
    assert queues["srpt"].requests == 80_000
    assert sl.simulate(KNOWN, rate=RATE, policies="srpt", stretch=False)["srpt"].stretch is None


def test_frames_are_pandas():
    pandas = pytest.importorskip("pandas")
    runs = sl.simulate(KNOWN, rate=RATE, policies="srpt,fair")
    frame = runs["srpt"].frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["end"].max() == pytest.approx(0.045)
    means = runs.frame()
    assert means.index.tolist() == ["srpt", "fair"]
    assert means.loc["srpt", "sojourn_mean"] == runs["srpt"].sojourn_mean


def test_an_overload_shows_its_recovery():
    source = sl.Alternating("bp:900,2e6,1.1", schedule=(5, 5, 0.2, 1.2), seconds=40)
    with pytest.warns(sl.DoubtWarning):
        found = sl.simulate(source, rate="10mbit", policies="srpt")["srpt"]
    assert found.recovery is not None and found.recovery.overloads > 0
    assert found.number_over_time["number"].max() > 1
    assert found.sojourn_over_time["sojourn_mean"].max() > 0
    assert (np.diff(found.sojourn_complementary["share"]) <= 0).all()
    same = sl.simulate(sl.Workload("w2", seconds=40), rate="10mbit", policies="srpt")["srpt"]
    assert same.recovery is not None


def test_a_run_that_is_too_short_warns():
    with pytest.warns(sl.DoubtWarning, match="want .* jobs"):
        runs = sl.simulate(sl.Steady("exp:1250", load=0.99, jobs=1000), rate=RATE)
    assert len(runs.warnings) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: sl.Jobs([0, 1], [1]), "2 arrivals and 1 sizes: want as many"),
        (lambda: sl.Jobs([1, 0], [1, 1]), r"arrival\[1\] = 0.*sort jobs by arrival"),
        (lambda: sl.Jobs([-1], [1]), r"arrival\[0\] = -1.*want seconds from 0"),
        (lambda: sl.Jobs([float("nan")], [1]), "want seconds from 0"),
        (lambda: sl.Jobs([0], [0]), r"size\[0\] = 0.*above 0"),
        (lambda: sl.Jobs([[0]], [1]), "2 dimensions; want 1"),
        (lambda: sl.simulate(sl.Jobs([], []), rate=RATE), "at least one"),
        (lambda: sl.Steady("exp:1250", load=1.2), "above 0 and below 1"),
        (lambda: sl.Steady("exp:1250", load=0.5, jobs=0), "want at least 1"),
        (lambda: sl.Steady("exp:1250", load=0.5, preload=-1), "want at least 0"),
        (lambda: sl.Steady("exp", load=0.5), "exp:MEAN"),
        (lambda: sl.Steady("bp:2,1,1", load=0.5), "HIGH"),
        (lambda: sl.Alternating("exp:1", schedule=(1, 2, 3)), "want seconds of low"),
        (lambda: sl.Alternating("exp:1", schedule=(1, 1, 1, 2)), "below 1"),
        (lambda: sl.Alternating("exp:1", schedule="w11"), "w11"),
        (lambda: sl.Workload("w11"), "w11"),
        (lambda: sl.Workload("w1", seconds=0), "want 1 to 86400"),
        (lambda: sl.simulate(KNOWN, rate="10"), "has no unit; write it like 10mbit"),
        (lambda: sl.simulate(KNOWN, rate=0), "want bits per second"),
        (lambda: sl.simulate(KNOWN, rate=RATE, policies="sprt"), "must be one of .*srpt"),
        (lambda: sl.simulate(KNOWN, rate=RATE, policies="srpt,scf"), "srpt twice"),
        (lambda: sl.simulate(KNOWN, rate=RATE, policies=[]), "must be one of"),
        (lambda: sl.simulate(KNOWN, rate=RATE, policies="srrt"), "10mbit/20ms"),
        (lambda: sl.simulate(KNOWN, rate=RATE, policies="fsp", servers=2), "want 1"),
        (lambda: sl.simulate(KNOWN, rate=RATE, servers=0), "want at least 1"),
        (lambda: sl.simulate(KNOWN, rate=RATE, clients="10 cows"), "clients: "),
        (lambda: sl.simulate(KNOWN, rate=RATE, setup=-1), "want seconds"),
        (lambda: sl.simulate(KNOWN, rate=RATE, aging=1, growing=1), "want one of them"),
        (lambda: sl.simulate(KNOWN, rate=RATE, guardrails=2), "want dispatch"),
        (lambda: sl.simulate(KNOWN, rate=RATE, backend_thrash="20:0.02"), "backend_capacity"),
        (lambda: sl.simulate(KNOWN, rate=RATE, confidence=2), "below 1"),
        (lambda: sl.simulate(KNOWN, rate=RATE, warmup=4), "no arrivals are left"),
        (lambda: sl.simulate(KNOWN, rate=RATE, jobs_in_system_max=1), "more than 1 jobs"),
        (
            lambda: sl.simulate(sl.Steady("bp:1000,inf,1.1", load=0.5), rate=RATE, policies="fifo"),
            "infinite",
        ),
    ],
)
def test_what_is_wrong_is_a_value_error_of_one_line(wrong, says):
    with pytest.raises(ValueError, match=says) as refused:
        wrong()
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: sl.Jobs(["a"], [1]), "arrival: want numbers"),
        (lambda: sl.Steady("exp:1250", load="0.8"), "load"),
        (lambda: sl.Steady("exp:1250", load=0.8, jobs=0.5), "want a whole number"),
        (lambda: sl.Steady(3, load=0.8), 'want text such as "exp:1"'),
        (lambda: sl.simulate("exp:1250", rate=RATE), "want Jobs, Trace, Workload"),
        (lambda: sl.simulate(KNOWN, rate=RATE, clients=[3]), "want text"),
    ],
)
def test_what_is_of_the_wrong_type_is_a_type_error(wrong, says):
    with pytest.raises(TypeError, match=says):
        wrong()


ENDLESS = """
import os, signal, threading, shortline
signal.signal(signal.SIGINT, signal.default_int_handler)
# This thread runs only if the simulation does not hold the interpreter.
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    shortline.simulate(
        shortline.Steady("exp:1250", load=0.9, jobs=10**10), rate=8e6, keep_jobs=False
    )
except KeyboardInterrupt:
    print("interrupted")
"""


def test_other_threads_run_and_ctrl_c_ends_a_run():
    ran = subprocess.run(
        [sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=300
    )
    assert ran.stdout == "interrupted\n", ran.stderr
    assert ran.returncode == 0
