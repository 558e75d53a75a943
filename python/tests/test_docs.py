"""What the documentation shows is run."""

import doctest
import re
import warnings

import pytest
from conftest import ROOT

import shortline

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_package_s_own_example():
    assert doctest.testmod(shortline).attempted > 3
    assert doctest.testmod(shortline).failed == 0


def test_the_manual_s_examples_run(tmp_path, monkeypatch, log):
    pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    blocks = BLOCK.findall((ROOT / "docs/python.md").read_text())
    assert len(blocks) >= 4
    monkeypatch.chdir(tmp_path)
    (tmp_path / "access.log").write_bytes(log.read_bytes())
    names: dict[str, object] = {}
    for block in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", shortline.LeftOutWarning)
            exec(compile(block, "docs/python.md", "exec"), names)
    assert (tmp_path / "srpt.svg").stat().st_size > 1000


def test_the_manual_names_what_there_is():
    manual = (ROOT / "docs/python.md").read_text()
    for name in shortline.__all__:
        assert f"`{name}" in manual, name
    for name in shortline.model.__all__:
        assert f"`model.{name}" in manual, name
