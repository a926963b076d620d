"""A mock server of its own for each worker of `pytest -n 4` (pytest-xdist), so that no test sees another's parcels."""

import json
import os
import urllib.request


def pytest_configure(config):
    """Starts the worker's server, before the modules of tests read its address."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    url = os.environ["PARCELO_BASE_URL"] + "/__mock/servers"
    with urllib.request.urlopen(urllib.request.Request(url, b"{}", method="POST")) as answer:
        server = json.load(answer)
    os.environ["PARCELO_BASE_URL"] = server["url"]
    os.environ["PARCELO_API_KEY"] = server["key"]
