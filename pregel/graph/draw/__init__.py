"""A compiled graph as data: its nodes and the edges that its channels mean."""

from pregel.graph.draw.data import Edge, Graph, Node
from pregel.graph.draw.describe import describe
from pregel.graph.draw.history import awhole_history, whole_history

__all__ = ["Edge", "Graph", "Node", "awhole_history", "describe", "whole_history"]
