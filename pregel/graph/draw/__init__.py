"""A compiled graph as data: its nodes and the edges that its channels mean."""

from pregel.graph.draw.data import Edge, Graph, Node
from pregel.graph.draw.describe import describe

__all__ = ["Edge", "Graph", "Node", "describe"]
