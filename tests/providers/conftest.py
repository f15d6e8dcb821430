"""The strict service, once a session and worker, and a conversation for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .service import Conversation, Service


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.stop()


@pytest.fixture
def conversation(service: Service) -> Conversation:
    return service.conversation()
