"""A Redis server for the tests of caches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import redis_server


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with redis_server.server() as url:
        if url is None:
            pytest.skip(redis_server.MISSING)
        yield url
