"""Arguments that the reference has and we answer for: renamed ones with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from pregel.warnings import LangGraphDeprecatedSinceV05, LangGraphDeprecatedSinceV10

_SINCE = {"config_schema": LangGraphDeprecatedSinceV10}


def renamed(where: str, given: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """Old keywords under their new names, with a warning; TypeError for those that never existed."""
    for old in given:
        if old not in names:
            raise TypeError(f"{where}() got an unexpected keyword argument {old!r}")
        message = f"`{old}` is deprecated and will be removed. Please use `{names[old]}` instead."
        warnings.warn(message, _SINCE.get(old, LangGraphDeprecatedSinceV05), stacklevel=3)
    return {names[old]: value for old, value in given.items()}
