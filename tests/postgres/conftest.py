"""One PostgreSQL for all tests of this folder, and a new database for each that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from helpers.postgres import Cluster

_NUMBER = count()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A server of our own; a test that stops it must start it again."""
    server = Cluster()
    yield server
    server.close()


@pytest.fixture
def database(cluster: Cluster) -> str:
    """The URL of an empty database."""
    return cluster.database(f"database_{next(_NUMBER)}")
