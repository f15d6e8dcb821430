from pregel.config import (
    RunnableConfig as RunnableConfig,
)
from pregel.config import (
    get_config as get_config,
)
from pregel.config import (
    get_store as get_store,
)
from pregel.config import (
    get_stream_writer as get_stream_writer,
)
from pregel.engine.node import NodeBuilder as NodeBuilder
from pregel.engine.pregel import Pregel as Pregel
from pregel.errors import (
    GraphInterrupt as GraphInterrupt,
)
from pregel.errors import (
    GraphRecursionError as GraphRecursionError,
)
from pregel.errors import (
    InvalidUpdateError as InvalidUpdateError,
)
from pregel.errors import (
    PregelError as PregelError,
)
from pregel.errors import (
    ThreadBusy as ThreadBusy,
)
from pregel.graph import (
    END as END,
)
from pregel.graph import (
    START as START,
)
from pregel.graph import (
    CompiledStateGraph as CompiledStateGraph,
)
from pregel.graph import (
    MessagesState as MessagesState,
)
from pregel.graph import (
    StateGraph as StateGraph,
)
from pregel.graph import (
    add_messages as add_messages,
)
from pregel.replay_log import (
    get_logger as get_logger,
)
from pregel.runtime import (
    Runtime as Runtime,
)
from pregel.runtime import (
    get_runtime as get_runtime,
)
from pregel.types import (
    CachePolicy as CachePolicy,
)
from pregel.types import (
    Command as Command,
)
from pregel.types import (
    Interrupt as Interrupt,
)
from pregel.types import (
    Overwrite as Overwrite,
)
from pregel.types import (
    RetryPolicy as RetryPolicy,
)
from pregel.types import (
    Send as Send,
)
from pregel.types import (
    StateSnapshot as StateSnapshot,
)
from pregel.types import (
    StateUpdate as StateUpdate,
)
from pregel.types import (
    TimeoutPolicy as TimeoutPolicy,
)
from pregel.types import (
    interrupt as interrupt,
)
from pregel.version import __version__ as __version__

__all__ = [
    "END",
    "START",
    "CachePolicy",
    "Command",
    "CompiledStateGraph",
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
    "Send",
    "StateGraph",
    "StateSnapshot",
    "StateUpdate",
    "ThreadBusy",
    "TimeoutPolicy",
    "__version__",
    "add_messages",
    "get_config",
    "get_logger",
    "get_runtime",
    "get_store",
    "get_stream_writer",
    "interrupt",
]
