"""Building graphs: nodes and edges over a typed state, compiled to what the engine runs."""

from pregel.constants import END, START
from pregel.graph.compiled import CompiledStateGraph
from pregel.graph.message import MessageGraph, MessagesState, add_messages
from pregel.graph.state import StateGraph

__all__ = ["END", "START", "CompiledStateGraph", "MessageGraph", "MessagesState", "StateGraph", "add_messages"]
