"""The strict service of the providers' tests, for LangChain's models as well."""

from __future__ import annotations

from tests.providers.conftest import conversation, service

__all__ = ["conversation", "service"]
