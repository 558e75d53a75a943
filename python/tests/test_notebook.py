"""The notebook runs from top to bottom, and draws three figures."""

import base64
import os
from pathlib import Path

import pytest
from conftest import ROOT

NOTEBOOK = ROOT / "python/notebooks/papers.ipynb"


def test_the_notebook_draws_its_figures(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # Kept without outputs, so that the tree stays small and nothing in it is out of date.
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client = nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    drawn = [
        output["data"]["image/png"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(drawn) == 3
    kept = Path(os.environ.get("NOTEBOOK_FIGURES") or tmp_path)
    kept.mkdir(parents=True, exist_ok=True)
    for number, picture in enumerate(drawn, start=1):
        figure = kept / f"papers-{number}.png"
        figure.write_bytes(base64.b64decode(picture))
        assert figure.stat().st_size > 10_000
