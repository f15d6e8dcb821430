"""`create_agent`: a model that calls tools in a loop, with middleware around its steps, as a compiled graph.

::

    START → before_agent… → ┌ before_model… → model → after_model… (last to first) ┐ → after_agent… → END
                            └──────────────── tools ←──────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pregel.agents.flow import FlowRunnable
from pregel.agents.middleware.base import HOOKS, NODE_HOOKS, AgentMiddleware, Hook, NodeHook
from pregel.agents.middleware.human import HumanInTheLoopMiddleware
from pregel.agents.middleware.requests import as_system_message
from pregel.agents.model_node import ModelNode, structured_names
from pregel.agents.models.base import ChatModel
from pregel.agents.models.init import as_model
from pregel.agents.routes import AfterModel, AfterTools, Onward, Places
from pregel.agents.state import AgentState, Schemas, merge_schemas
from pregel.agents.structured_output import ProviderStrategy, as_strategy, schemas_of
from pregel.agents.tool_call_stream import ToolCallTransformer
from pregel.agents.tool_errors import HandleToolErrors
from pregel.agents.tool_node import ToolNode
from pregel.agents.tools.base import Tool
from pregel.agents.tools.foreign import as_tools, tool_list
from pregel.checkpoint.serde.registry import register_types, types_of
from pregel.constants import END, START
from pregel.errors import DefinitionError, InvalidUpdateError
from pregel.graph.state import CompiledStateGraph, StateGraph
from pregel.messages import SystemMessage, with_ids
from pregel.types import Checkpointer, Command

RECURSION_LIMIT = 9_999
MODEL, TOOLS = "model", "tools"
AgentGraph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]


def create_agent(
    model: str | ChatModel | Any,
    tools: Sequence[Any] | None = None,
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[AgentMiddleware] = (),
    response_format: Any = None,
    state_schema: Any = None,
    context_schema: type | None = None,
    checkpointer: Checkpointer = None,
    store: Any = None,
    interrupt_before: Sequence[str] | None = None,
    interrupt_after: Sequence[str] | None = None,
    debug: bool = False,
    name: str | None = None,
    cache: Any = None,
    transformers: Sequence[Any] | None = None,
    handle_tool_errors: HandleToolErrors = True,
) -> AgentGraph:
    """An agent: a graph that asks the model, runs the tools it calls, each call as a task of its own, and asks again.

    - `model`: a ChatModel, ``"provider:name"``, or a chat model of LangChain.
    - `tools`: tools, functions, tools of LangChain; a dict is a provider's own tool, which the provider runs.
    - `system_prompt`: stands before the messages of each call and is never stored.
    - `response_format`: a schema, or a strategy of `agents.structured_output`; the result is ``structured_response``.
    - `state_schema`: a subclass of `AgentState` with more keys; middleware brings its own.
    - `handle_tool_errors`: what becomes of a tool's error, by default a message to the model; see `ToolNode`. Faults of
      the program and of its storage are always raised.
    - `transformers`: projections for `stream_events`, beside `tool_calls` and those that middleware brings.

    The state is {"messages": [...]}; a thread's run goes on where its process died, with the answers that were stored.
    """
    return _Agent(
        model,
        tools or (),
        system_prompt,
        middleware,
        response_format,
        state_schema,
        name,
        handle_tool_errors,
    ).compiled(
        context_schema,
        name,
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        debug=debug,
        cache=cache,
        transformers=transformers,
    )


class _Agent:
    """The parts of one agent, and the graph they make."""

    def __init__(
        self,
        model: Any,
        tools: Sequence[Any],
        system_prompt: str | SystemMessage | None,
        middleware: Sequence[AgentMiddleware],
        response_format: Any,
        state_schema: Any,
        name: str | None,
        handle_tool_errors: HandleToolErrors,
    ) -> None:
        self.middleware = _distinct(middleware)
        self.hooks: dict[str, list[Hook]] = {
            kind: [hook for one in self.middleware if (hook := Hook.of(one, kind)) is not None] for kind in HOOKS
        }
        self.tools, provided = _tools(self.middleware, tools)
        for one in self.middleware:
            if isinstance(one, HumanInTheLoopMiddleware):
                one.warn_of_misspelt(tool.name for tool in self.tools)
        self.strategy = as_strategy(response_format)
        register_types({cls for schema in schemas_of(self.strategy) for cls in types_of(schema)})
        self.schemas: Schemas = merge_schemas(
            [AgentState, *(one.state_schema for one in self.middleware), state_schema or AgentState]
        )
        wraps = self.hooks["wrap_tool_call"]
        self.has_tools = bool(self.tools or wraps)
        self.model_node = ModelNode(
            as_model(model),
            tools=[*self.tools, *provided],
            system_message=as_system_message(system_prompt),
            response_format=self.strategy,
            name=name,
            hooks=self.hooks["wrap_model_call"],
            open_tools=bool(wraps),
        )
        self.tool_node = ToolNode(self.tools, handle_tool_errors=handle_tool_errors, hooks=wraps)
        self.places = Places(
            loop=self._first("before_model") or MODEL,
            exit=self._last("after_agent") or END,
            tools=TOOLS if self.has_tools else None,
            direct=frozenset(tool.name for tool in self.tools if tool.return_direct),
            structured=structured_names(self.strategy),
        )

    def _first(self, kind: NodeHook) -> str | None:
        return next((hook.title for hook in self.hooks[kind]), None)

    def _last(self, kind: NodeHook) -> str | None:
        return next((hook.title for hook in reversed(self.hooks[kind])), None)

    def compiled(
        self, context_schema: type | None, name: str | None, *, transformers: Sequence[Any] | None, **options: Any
    ) -> AgentGraph:
        """The graph."""
        state, given, gives, _ = self.schemas
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(
            state, context_schema=context_schema, input_schema=given, output_schema=gives
        )
        self._add_nodes(graph)
        self._add_edges(graph)
        metadata: dict[str, Any] = {"ls_integration": "pregel_create_agent"}
        if name is not None:
            metadata["lc_agent_name"] = name
        brought = [transformer for one in self.middleware for transformer in one.transformers]
        shown = list(dict.fromkeys([ToolCallTransformer, *brought, *(transformers or ())]))
        made = graph.compile(name=name, transformers=shown, **options)
        made.operation = "invoke_agent"
        bound: AgentGraph = made.with_config({"recursion_limit": RECURSION_LIMIT, "metadata": metadata})
        return bound

    def _add_nodes(self, graph: StateGraph[Any, Any, Any, Any]) -> None:
        graph.add_node(MODEL, FlowRunnable(self.model_node.flow, MODEL))
        if self.has_tools:
            graph.add_node(TOOLS, self.tool_node)
        for kind in NODE_HOOKS:
            for hook in self.hooks[kind]:
                policy = hook.middleware.trace_policy
                graph.add_node(hook.title, FlowRunnable(_node(hook), hook.title), trace_policy=policy)

    def _add_edges(self, graph: StateGraph[Any, Any, Any, Any]) -> None:
        """Every node's way on. The hook that runs last behind the model, or the model itself, decides."""
        before = [*self.hooks["before_agent"], *self.hooks["before_model"]]
        behind = list(reversed(self.hooks["after_model"]))
        ending = list(reversed(self.hooks["after_agent"]))
        graph.add_edge(START, before[0].title if before else MODEL)
        self._chain(graph, before, MODEL)
        if behind:
            graph.add_edge(MODEL, behind[0].title)
            self._chain(graph, behind[:-1], behind[-1].title)
        self._decide(graph, behind[-1] if behind else None)
        if self.has_tools:
            ends = [self.places.loop]
            if self.places.direct or self.places.structured or self.hooks["wrap_tool_call"]:
                ends.append(self.places.exit)
            graph.add_conditional_edges(TOOLS, AfterTools(self.places, TOOLS), _unique(ends))
        self._chain(graph, ending, END)

    def _chain(self, graph: StateGraph[Any, Any, Any, Any], hooks: Sequence[Hook], last: str) -> None:
        """An edge from each hook to the next; a conditional one where it may jump."""
        names = [hook.title for hook in hooks]
        for hook, after in zip(hooks, [*names, last][1:], strict=True):
            if jumps := self._jumps(hook):
                route = Onward(self.places, hook.title, after)
                graph.add_conditional_edges(hook.title, route, _unique([after, *jumps]))
            else:
                graph.add_edge(hook.title, after)

    def _jumps(self, hook: Hook) -> list[str]:
        if "tools" in hook.can_jump_to and not self.has_tools and hook.can_jump_to is not Hook.UNDECLARED:
            raise DefinitionError(
                f"{hook.title} may jump to the tools, and the agent has none.",
                fix="Give the agent a tool, or leave 'tools' out of can_jump_to.",
            )
        targets = {"model": self.places.loop, "end": self.places.exit, "tools": self.places.tools}
        return [target for jump in hook.can_jump_to if (target := targets[jump]) is not None]

    def _decide(self, graph: StateGraph[Any, Any, Any, Any], hook: Hook | None) -> None:
        """The way on from the model, or from the hook that runs last behind it."""
        source, places = (hook.title if hook is not None else MODEL), self.places
        must_answer = not (self.strategy is None or isinstance(self.strategy, ProviderStrategy) or self.has_tools)
        ends = [*([places.tools] if places.tools else []), places.exit]
        if hook is not None:
            ends += [places.loop] if self.has_tools or must_answer else self._jumps(hook)
        elif self.strategy is not None or (self.has_tools and self.hooks["wrap_model_call"]):
            ends.append(places.loop)
        if self.has_tools or must_answer or len(_unique(ends)) > 1:
            route = AfterModel(places, source, must_answer=must_answer)
            graph.add_conditional_edges(source, route, _unique(ends))
        else:
            graph.add_edge(source, places.exit)


def _distinct(middleware: Sequence[AgentMiddleware]) -> list[AgentMiddleware]:
    """The middleware; DefinitionError for what is none, and when two have one name."""
    if not isinstance(middleware, Iterable):
        raise DefinitionError(f"{middleware!r} is no list of middleware.", fix="Put it in a list: middleware=[...].")
    for one in middleware:
        if isinstance(one, type):
            raise DefinitionError(f"{one!r} is a class.", fix=f"Give an instance: {one.__name__}(...).")
        if not isinstance(one, AgentMiddleware):
            raise DefinitionError(
                f"{one!r} is no middleware.",
                fix="Derive from AgentMiddleware, or decorate a function, e.g. with @before_model.",
            )
    names = [one.name for one in middleware]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DefinitionError(
            f"Several middleware are called {', '.join(map(repr, twice))}.", fix="Override `name` to tell them apart."
        )
    return list(middleware)


def _tools(middleware: Sequence[AgentMiddleware], given: Sequence[Any]) -> tuple[list[Tool], list[Mapping[str, Any]]]:
    """The tools that the agent runs, those of its middleware first, and those that the provider runs.

    Of two with one name, from different sources, the later one counts, at the place of the first.
    """
    sources = [*(getattr(one, "tools", None) or () for one in middleware), tool_list(given)]
    provided = [tool for source in sources for tool in source if isinstance(tool, Mapping)]
    own = [as_tools([tool for tool in source if not isinstance(tool, Mapping)]) for source in sources]
    return list({tool.name: tool for tools in own for tool in tools}.values()), provided


def _node(hook: Hook) -> Any:
    """The work of a hook's node."""

    def work(state: Any, running: Any) -> Any:
        result = yield from hook.node_flow(state, running)
        update = result.update if isinstance(result, Command) else result
        if not isinstance(update, Mapping):
            return result
        _check_jump(hook, update.get("jump_to"))
        if not update.get("messages"):
            return result
        update = {**update, "messages": with_ids(update["messages"])}
        return replace(result, update=update) if isinstance(result, Command) else update

    return work


def _check_jump(hook: Hook, to: Any) -> None:
    """InvalidUpdateError for a jump to what the hook does not declare: its edges do not lead there."""
    if to is not None and to not in hook.can_jump_to:
        declared = ", ".join(hook.can_jump_to) or "nothing"
        raise InvalidUpdateError(
            f"{hook.title} jumps to {to!r}, and declares {declared} as where it may jump to.",
            fix="Name it in can_jump_to, or leave can_jump_to out; targets are 'tools', 'model' and 'end'.",
            node=hook.title,
        )


def _unique(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))
