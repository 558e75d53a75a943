"""The type hints: strict by mypy, and the stub is like the module that it describes."""

import subprocess
import sys
from pathlib import Path

import pytest

USE = '''
import numpy as np
import shortline as sl

runs = sl.simulate(sl.Steady(sl.Distribution.exponential(1250), load=0.5), rate="10mbit")
mean: float = runs["srpt"].sojourn_mean
half_width: float | None = runs["srpt"].sojourn_mean_half_width
ends: np.ndarray = runs["srpt"].jobs["end"]
loads = sl.model.sojourn_mean("srpt", "exp:1", np.linspace(0.1, 0.9, 9))
top: np.float64 = loads.max()
names: list[str] = [policy.name for policy in sl.policies()]
'''


def checked(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.fixture
def configuration() -> str:
    return str(Path(__file__).resolve().parents[1] / "pyproject.toml")


def test_the_package_is_strict(tmp_path, configuration):
    ran = checked("mypy", "--config-file", configuration, "-p", "shortline", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_uses_it_is_checked(tmp_path):
    use = tmp_path / "use.py"
    use.write_text(USE)
    ran = checked("mypy", "--strict", str(use), cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    use.write_text(USE + "wrong: str = runs['srpt'].sojourn_mean\n")
    ran = checked("mypy", "--strict", str(use), cwd=tmp_path)
    assert ran.returncode == 1 and "Incompatible types" in ran.stdout, ran.stdout


def test_the_stub_is_like_the_module(tmp_path, configuration):
    arguments = ("--mypy-config-file", configuration, "shortline._core")
    ran = checked("mypy.stubtest", *arguments, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
