"""Examples in docstrings run in an empty folder of their own, where they may write files."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _folder_of_the_example(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        folder = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)
