"""What the tests share: the program `shortline`, and a log like a server's."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program() -> str:
    """The command beside the package; `scripts/wheel test` says where it is."""
    found = os.environ.get("SHORTLINE") or shutil.which("shortline")
    if not found:
        pytest.skip("no program `shortline`: SHORTLINE does not name it")
    return str(Path(found).resolve())


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in Combined Log Format: 4000 pages and files in 300 s, some HEAD and 404, a torn line."""
    rng = np.random.default_rng(7)
    seconds = np.sort(rng.uniform(0, 300, 4000)).astype(int)
    sizes = np.ceil(400 * rng.pareto(1.2, 4000) + 200).astype(int)
    kinds = rng.choice(["GET / 200", "HEAD / 200", "GET /gone 404"], 4000, p=[0.9, 0.05, 0.05])
    lines = []
    for second, size, kind in zip(seconds, sizes, kinds):
        method, path, status = kind.split()
        at = f"10/Oct/2025:13:{second // 60:02}:{second % 60:02} +0000"
        lines.append(f'10.0.0.1 - - [{at}] "{method} {path} HTTP/1.1" {status} {size} "-" "b"\n')
    lines.insert(2000, "10.0.0.1 - - [10/Oct/2025:13:0\n")
    path = tmp_path_factory.mktemp("log") / "access.log"
    path.write_text("".join(lines))
    return path
