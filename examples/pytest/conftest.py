"""A mock server for each test, so that no test sees another's parcels, also with `pytest -n 4` (pytest-xdist)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from parcelo_mock import Mock


@pytest.fixture
def mock() -> Iterator[Mock]:
    suite = Mock(os.environ["PARCELO_BASE_URL"])
    server = suite.start()
    yield Mock(server["url"], server["key"])
    assert suite.stop(server["port"]) == []  # nothing was shipped twice, and each fault hit a request
