"""What connects other libraries with runs once they are loaded; it is light, so whatever makes graphs imports it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pregel.engine.heard import finders, surroundings
from pregel.interop.langchain_tokens import connect
from pregel.tokens import adapters

if TYPE_CHECKING:
    from pregel.engine.call import Call
    from pregel.engine.heard import Heard


def _found(call: Call) -> Heard | None:
    from pregel.interop.langchain_runs import found  # it is needed where LangChain is loaded

    finders["langchain_core"] = found
    return found(call)


def _surrounding() -> Any:
    config = sys.modules["langchain_core.runnables.config"].var_child_runnable_config.get()
    return None if config is None else config.get("callbacks")


adapters["langchain_core"] = connect
finders["langchain_core"] = _found
surroundings["langchain_core.runnables.config"] = _surrounding
