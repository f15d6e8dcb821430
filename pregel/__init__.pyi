from pregel.graph import (
    END as END,
    START as START,
    CompiledStateGraph as CompiledStateGraph,
    MessagesState as MessagesState,
    StateGraph as StateGraph,
    add_messages as add_messages,
)
from pregel.engine.pregel import Pregel as Pregel
from pregel.engine.node import NodeBuilder as NodeBuilder
from pregel.config import (
    RunnableConfig as RunnableConfig,
    get_config as get_config,
    get_store as get_store,
    get_stream_writer as get_stream_writer,
)
from pregel.runtime import (
    Runtime as Runtime,
    get_runtime as get_runtime,
)
from pregel.types import (
    CachePolicy as CachePolicy,
    Command as Command,
    Interrupt as Interrupt,
    Overwrite as Overwrite,
    RetryPolicy as RetryPolicy,
    Send as Send,
    StateSnapshot as StateSnapshot,
    StateUpdate as StateUpdate,
    TimeoutPolicy as TimeoutPolicy,
    interrupt as interrupt,
)
from pregel.errors import (
    GraphInterrupt as GraphInterrupt,
    GraphRecursionError as GraphRecursionError,
    InvalidUpdateError as InvalidUpdateError,
    PregelError as PregelError,
    ThreadBusy as ThreadBusy,
)
from pregel.version import __version__ as __version__

__all__ = [
    "CachePolicy",
    "Command",
    "CompiledStateGraph",
    "END",
    "GraphInterrupt",
    "GraphRecursionError",
    "Interrupt",
    "InvalidUpdateError",
    "MessagesState",
    "NodeBuilder",
    "Overwrite",
    "Pregel",
    "PregelError",
    "RetryPolicy",
    "RunnableConfig",
    "Runtime",
    "START",
    "Send",
    "StateGraph",
    "StateSnapshot",
    "StateUpdate",
    "ThreadBusy",
    "TimeoutPolicy",
    "__version__",
    "add_messages",
    "get_config",
    "get_runtime",
    "get_store",
    "get_stream_writer",
    "interrupt",
]
