"""One PostgreSQL for all tests of this folder, and an empty place in it for each that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from helpers.postgres import Cluster

_NUMBER = count()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A server of our own; a test that stops it must start it again."""
    server = Cluster()
    server.database("tests")
    yield server
    server.close()


@pytest.fixture
def database(cluster: Cluster) -> str:
    """The URL of a place without any tables: a schema, which is made much faster than a database."""
    name, url = f"place_{next(_NUMBER)}", f"postgresql://bridle@127.0.0.1:{cluster.port}/tests"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}?options=-csearch_path%3D{name}"
