"""The built-in middleware, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pregel import Command, interrupt
from pregel.agents import ScriptedModel, create_agent, tool
from pregel.agents.middleware import (
    AccountMiddleware,
    AgentMiddleware,
    BudgetExceededError,
    BudgetMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    DockerExecutionPolicy,
    FilesystemFileSearchMiddleware,
    HostExecutionPolicy,
    LLMToolEmulator,
    LLMToolSelectorMiddleware,
    ModelCallLimitExceededError,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ModelRetryMiddleware,
    PIIDetectionError,
    PIIMiddleware,
    RedactionRule,
    ShellToolMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitExceededError,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from pregel.agents.middleware.summarization import safe_cut
from pregel.agents.models import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelRateLimitError,
    ModelRefusalError,
    call_tool,
    call_tools,
)
from pregel.errors import DefinitionError, InvalidInputError
from pregel.messages import AIMessage, HumanMessage, ToolMessage

from .conftest import Runner

HI = {"messages": "hi"}
Thread = Callable[[str], Any]


@tool
def double(n: int) -> int:
    """Double a number."""
    return n * 2


def doubling(*numbers: int) -> AIMessage:
    return call_tools(*(call_tool("double", {"n": number}) for number in numbers))


def played(run: Runner, answers: Any, *middleware: AgentMiddleware, tools: Any = (double,), given: Any = HI) -> Any:
    return run.invoke(create_agent(ScriptedModel(answers), list(tools), middleware=middleware), given)


def texts(result: Any, kind: str = "tool") -> list[str]:
    return [message.text for message in result["messages"] if message.type == kind]


# -- summarization ---------------------------------------------------------------------------------------------------


def summarizing(run: Runner, messages: list[Any], **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(lambda request: "SUMMARY" if "too long" in request.messages[0].text else "answer")
    middleware = SummarizationMiddleware(model, **options)
    return run.invoke(create_agent(model, middleware=[middleware]), {"messages": messages}), model


def test_a_long_history_becomes_a_summary_and_its_end(run: Runner) -> None:
    history = [HumanMessage(f"m{number}") for number in range(10)]

    result, model = summarizing(run, history, trigger=("messages", 10), keep=("messages", 2))

    head, *kept = result["messages"]
    assert head.text.endswith("SUMMARY")
    assert ["m8", "m9", "answer"] == [message.text for message in kept]
    assert 2 == model.calls
    short, model = summarizing(run, history[:9], trigger=("messages", 10), keep=("messages", 2))
    assert (10, 1) == (len(short["messages"]), model.calls)


def test_triggers_may_be_tokens_fractions_and_combined(run: Runner) -> None:
    history = [HumanMessage("x" * 400) for _ in range(6)]

    def summarized(**options: Any) -> bool:
        return len(summarizing(run, history, keep=("messages", 1), **options)[0]["messages"]) == 3

    assert [True, False] == [summarized(trigger=("tokens", tokens)) for tokens in (600, 700)]
    assert [True, False] == [summarized(trigger={"tokens": 600, "messages": count}) for count in (6, 7)]
    assert [True, False] == [summarized(trigger=trigger) for trigger in ([("messages", 99), ("tokens", 1)], None)]
    with pytest.raises(DefinitionError, match="window"):
        summarized(trigger=("fraction", 0.5))
    with pytest.raises(DefinitionError, match="no size"):
        summarized(trigger=("pages", 1))
    profile: Any = {"max_input_tokens": 1000}
    assert (
        500
        == SummarizationMiddleware(ScriptedModel([], profile=profile), trigger=("fraction", 0.5)).summarizer.clauses[0][
            "tokens"
        ]
    )


def test_the_end_that_stays_may_be_measured_in_tokens(run: Runner) -> None:
    history = [HumanMessage("x" * 400) for _ in range(6)]

    result, _ = summarizing(run, history, trigger=("messages", 6), keep=("tokens", 250))

    assert 4 == len(result["messages"])


def test_a_result_is_never_parted_from_its_call() -> None:
    """Every mix of calls and results of a few messages, and every place to cut."""
    kinds = [
        HumanMessage("h"),
        call_tools(call_tool("a", id="1"), call_tool("b", id="2")),
        ToolMessage("r", tool_call_id="1"),
        ToolMessage("r", tool_call_id="2"),
        call_tool("c", id="3"),
        ToolMessage("r", tool_call_id="3"),
    ]
    for order in itertools.permutations(kinds):
        for wanted in range(len(order) + 1):
            cut = safe_cut(order, wanted)
            before = {call["id"] for one in order[:cut] if one.type == "ai" for call in one.tool_calls}
            orphans = [
                one for at, one in enumerate(order[cut:], cut) if one.type == "tool" and one.tool_call_id in before
            ]
            assert [] == orphans, (order, wanted, cut)


def test_a_summary_may_be_made_by_a_function_or_after_an_overflow(run: Runner) -> None:
    history = [HumanMessage(f"m{number}") for number in range(8)]
    limits: Any = {"trigger": ("messages", 8), "keep": ("messages", 1)}

    async def later(messages: list[Any]) -> str:
        return f"later {len(messages)}"

    result, _ = summarizing(run, history, summarizer=lambda messages: f"{len(messages)} messages", **limits)
    assert result["messages"][0].text.endswith("7 messages")
    if run.name == "async":
        result, _ = summarizing(run, history, summarizer=later, **limits)
        assert result["messages"][0].text.endswith("later 7")
    other = ScriptedModel([ContextOverflowError("too long"), "shorter"])
    result, _ = summarizing(run, history, summarizer=other, **limits)
    assert result["messages"][0].text.endswith("shorter")


# -- limits ----------------------------------------------------------------------------------------------------------


def test_model_calls_are_limited_for_a_run_and_for_a_thread(run: Runner, saver: Any, thread: Thread) -> None:
    model = ScriptedModel(lambda _: doubling(1))
    limit = ModelCallLimitMiddleware(run_limit=2, thread_limit=3)
    agent = create_agent(model, [double], middleware=[limit], checkpointer=saver)

    first = run.invoke(agent, HI, thread("t"))
    assert (2, True) == (model.calls, "2 model calls" in first["messages"][-1].text)
    second = run.invoke(agent, HI, thread("t"))
    assert (3, True) == (model.calls, "3 model calls" in second["messages"][-1].text)
    strict = create_agent(
        ScriptedModel([doubling(1)]),
        [double],
        middleware=[ModelCallLimitMiddleware(run_limit=1, exit_behavior="error")],
    )
    with pytest.raises(ModelCallLimitExceededError) as caught:
        run.invoke(strict, HI)
    error = caught.value
    assert (1, 1, None, 1) == (error.thread_count, error.run_count, error.thread_limit, error.run_limit)
    with pytest.raises(DefinitionError):
        ModelCallLimitMiddleware()
    for wrong in (-1, "3", True, 1.5):
        with pytest.raises(DefinitionError, match="0 or more"):
            ModelCallLimitMiddleware(run_limit=wrong)  # type: ignore[arg-type]


def test_tool_calls_above_the_limit_are_answered_and_the_others_run(run: Runner) -> None:
    result = played(run, [doubling(1, 2), doubling(3), "ok"], ToolCallLimitMiddleware(run_limit=1))

    answers = [(m.status, m.text[:10]) for m in result["messages"] if m.type == "tool"]
    assert [("error", "The limit "), ("success", "2"), ("error", "The limit ")] == answers
    assert "ok" == result["messages"][-1].text


def test_tool_calls_above_the_limit_may_end_the_run_or_raise(run: Runner) -> None:
    ended = played(run, [doubling(1, 2)], ToolCallLimitMiddleware(run_limit=1, exit_behavior="end"))
    assert ["error", "error"] == [m.status for m in ended["messages"] if m.type == "tool"]
    assert "ai" == ended["messages"][-1].type
    strict = ToolCallLimitMiddleware(tool_name="double", run_limit=1, exit_behavior="error")
    with pytest.raises(ToolCallLimitExceededError) as caught:
        played(run, [doubling(1), doubling(2)], strict)
    error = caught.value
    assert ("double", 1, 1) == (error.tool_name, error.thread_count, error.run_count)
    assert (None, 1) == (error.thread_limit, error.run_limit)
    with pytest.raises(DefinitionError):
        ToolCallLimitMiddleware(run_limit=2, thread_limit=1)


def test_one_tool_may_have_a_limit_of_its_own(run: Runner, saver: Any, thread: Thread) -> None:
    limits = [ToolCallLimitMiddleware(tool_name="double", thread_limit=1), ToolCallLimitMiddleware(run_limit=5)]
    model = ScriptedModel([doubling(1), "ok", doubling(2), "ok"])
    agent = create_agent(model, [double], middleware=limits, checkpointer=saver)

    assert ["2"] == texts(run.invoke(agent, HI, thread("t")))
    assert ["2", "The limit of calls of 'double' is reached"] == [
        text.partition(".")[0] for text in texts(run.invoke(agent, HI, thread("t")))
    ]


# -- retries and fallbacks -------------------------------------------------------------------------------------------


def test_a_failed_model_call_is_tried_again(run: Runner) -> None:
    retry = ModelRetryMiddleware(initial_delay=0)

    assert (
        "ok" == played(run, [ModelRateLimitError("a", retry_after=0), OSError("b"), "ok"], retry)["messages"][-1].text
    )
    gave_up = played(run, [OSError("a"), OSError("b"), OSError("c")], retry)
    assert "failed 3 times, the last time with OSError: c" in gave_up["messages"][-1].text
    with pytest.raises(ModelAuthenticationError):
        played(run, [ModelAuthenticationError("no"), "ok"], retry)
    with pytest.raises(OSError, match="b"):
        played(
            run, [OSError("a"), OSError("b")], ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="error")
        )
    with pytest.raises(DefinitionError):
        ModelRetryMiddleware(max_retries=-1)


def test_a_failed_tool_is_tried_again_and_told(run: Runner) -> None:
    failures = iter([OSError("a"), OSError("b")])

    @tool
    def shaky(n: int) -> int:
        """Shaky."""
        for failure in failures:
            raise failure
        return n

    answers = [call_tool("shaky", {"n": 7}), "ok"]
    assert ["7"] == texts(played(run, answers, ToolRetryMiddleware(initial_delay=0), tools=[shaky]))

    @tool
    def broken() -> int:
        """Broken."""
        raise OSError("always")

    told = played(run, [call_tool("broken"), "ok"], ToolRetryMiddleware(initial_delay=0, jitter=False), tools=[broken])
    assert "failed 3 times" in texts(told)[0]
    worded = ToolRetryMiddleware(max_retries=0, tools=[broken], on_failure=lambda error: f"<{error}>")
    assert ["<always>"] == texts(played(run, [call_tool("broken"), "ok"], worded, tools=[broken]))


def test_a_retry_does_not_take_a_question_for_a_failure(run: Runner, saver: Any, thread: Thread) -> None:
    @tool
    def ask() -> str:
        """Ask."""
        return str(interrupt("?"))

    model = ScriptedModel([call_tool("ask"), "ok"])
    agent = create_agent(model, [ask], middleware=[ToolRetryMiddleware(initial_delay=0)], checkpointer=saver)

    assert "?" == run.invoke(agent, HI, thread("t"))["__interrupt__"][0].value
    assert ["yes"] == texts(run.invoke(agent, Command(resume="yes"), thread("t")))


def test_a_tools_error_may_be_worded_by_a_function(run: Runner) -> None:
    @tool
    def broken(why: str) -> int:
        """Broken."""
        raise OSError(why)

    words = ToolErrorMiddleware(lambda error, request: f"{request.tool_call['name']}: {error}")
    assert ["broken: x"] == texts(played(run, [call_tool("broken", {"why": "x"}), "ok"], words, tools=[broken]))
    silent = ToolErrorMiddleware(lambda error, request: None)
    assert "OSError('x')" in texts(played(run, [call_tool("broken", {"why": "x"}), "ok"], silent, tools=[broken]))[0]
    with pytest.raises(DefinitionError):
        ToolErrorMiddleware()


def test_other_models_are_asked_when_the_first_one_fails(run: Runner) -> None:
    second, third = ScriptedModel([OSError("two")]), ScriptedModel(["three"])
    result = played(run, [OSError("one")], ModelFallbackMiddleware(second, third))
    assert "three" == result["messages"][-1].text
    with pytest.raises(OSError, match="two"):
        played(run, [OSError("one")], ModelFallbackMiddleware(ScriptedModel([OSError("two")])))


def test_a_refusal_may_be_an_error_and_lead_to_another_model(run: Runner) -> None:
    refusal = AIMessage([{"type": "refusal", "refusal": "I will not"}])
    with pytest.raises(ModelRefusalError, match="I will not"):
        played(run, [refusal], ModelRefusalMiddleware())
    fallback = ModelFallbackMiddleware(ScriptedModel(["sure"]))
    assert "sure" == played(run, [refusal], fallback, ModelRefusalMiddleware())["messages"][-1].text


# -- todo list, context, data ----------------------------------------------------------------------------------------


def todos(*contents: str) -> AIMessage:
    return call_tool("write_todos", {"todos": [{"content": one, "status": "pending"} for one in contents]})


def test_the_model_keeps_a_list_of_what_to_do(run: Runner) -> None:
    model = ScriptedModel([todos("a", "b"), "ok"])
    agent = create_agent(model, system_prompt="base", middleware=[TodoListMiddleware(system_prompt="USE IT")])

    result = run.invoke(agent, HI)

    assert ["a", "b"] == [todo["content"] for todo in result["todos"]]
    assert "base\n\nUSE IT" == model.requests[0].messages[0].text
    twice = played(run, [call_tools(todos("a"), todos("b")), todos("c"), "ok"], TodoListMiddleware())
    assert (["c"], ["error", "error", "success"]) == (
        [todo["content"] for todo in twice["todos"]],
        [message.status for message in twice["messages"] if message.type == "tool"],
    )


def test_old_results_are_left_out_of_the_request_alone(run: Runner) -> None:
    history: list[Any] = [HumanMessage("hi")]
    for number in range(5):
        history += [
            call_tool("double", {"n": number}, id=f"{number}"),
            ToolMessage("x" * 100, tool_call_id=f"{number}"),
        ]
    model = ScriptedModel(["ok"])
    edit = ClearToolUsesEdit(trigger=100, keep=2, clear_tool_inputs=True)
    agent = create_agent(model, [double], middleware=[ContextEditingMiddleware(edits=[edit])])

    result = run.invoke(agent, {"messages": history})

    seen = [message.text for message in model.requests[0].messages if message.type == "tool"]
    assert ["[cleared]"] * 3 + ["x" * 100] * 2 == seen
    assert {} == model.requests[0].messages[1].tool_calls[0]["args"]
    assert ["x" * 100] * 5 == texts(result)


@pytest.mark.parametrize(
    ("kind", "text", "redacted", "masked"),
    [
        ("email", "to ann@mail.org now", "to [REDACTED_EMAIL] now", "to ***@****.org now"),
        ("credit_card", "4111 1111 1111 1111", "[REDACTED_CREDIT_CARD]", "****-****-****-1111"),
        ("credit_card", "4111 1111 1111 1112", "4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("ip", "at 10.0.0.12, not 999.1.1.1", "at [REDACTED_IP], not 999.1.1.1", "at *.*.*.12, not 999.1.1.1"),
        ("mac_address", "00:1B:44:11:3A:B7", "[REDACTED_MAC_ADDRESS]", "*************3A:B7".replace("3A:B7", "A:B7")),
        ("url", "see https://a.b/c?d", "see [REDACTED_URL]", "see [MASKED_URL]"),
    ],
)
def test_personal_data_is_found(kind: str, text: str, redacted: str, masked: str) -> None:
    assert redacted == RedactionRule(kind).resolved()(text)
    assert masked == RedactionRule(kind, "mask").resolved()(text)


def test_personal_data_is_kept_out_of_model_and_state(run: Runner) -> None:
    @tool
    def find() -> str:
        """Find."""
        return "bob@mail.org"

    model = ScriptedModel([call_tool("find"), "it is eve@mail.org"])
    everywhere = PIIMiddleware("email", apply_to_output=True, apply_to_tool_results=True)
    result = run.invoke(
        create_agent(model, [find], middleware=[everywhere]), {"messages": [{"role": "user", "content": "a@b.org"}]}
    )

    assert "mail.org" not in f"{model.requests} {result}"
    assert ["[REDACTED_EMAIL]", "", "[REDACTED_EMAIL]", "it is [REDACTED_EMAIL]"] == [
        m.text for m in result["messages"]
    ]
    with pytest.raises(PIIDetectionError, match="'email'"):
        played(run, ["x"], PIIMiddleware("email", strategy="block"), given={"messages": "a@b.org"})
    hashed = played(run, ["x"], PIIMiddleware("id", detector=r"\d+", strategy="hash"), given={"messages": "no 12"})
    assert "no <id_hash:6b51d431>" == hashed["messages"][0].text
    with pytest.raises(DefinitionError, match="no detector"):
        PIIMiddleware("shoe size")


# -- models for middleware -------------------------------------------------------------------------------------------


def test_a_model_chooses_the_tools(run: Runner) -> None:
    @tool
    def triple(n: int) -> int:
        """Triple."""
        return n * 3

    def shown(*choices: Any, **options: Any) -> list[str]:
        model = ScriptedModel(["ok"])
        select = LLMToolSelectorMiddleware(model=ScriptedModel(choices), **options)
        run.invoke(create_agent(model, [double, triple, {"type": "own"}], middleware=[select]), HI)
        return [spec["type"] if isinstance(spec, dict) else spec.name for spec in model.requests[0].tools]  # type: ignore[union-attr]

    def choose(*names: str) -> AIMessage:
        return call_tool("select_tools", {"tools": list(names)})

    assert ["triple", "own"] == shown(choose("triple"))
    assert ["double", "triple", "own"] == shown(choose("triple"), always_include=["double"])
    assert ["triple", "own"] == shown(choose("triple", "double"), max_tools=1)
    assert ["double", "own"] == shown("words", choose("double"))
    assert ["double", "triple", "own"] == shown("words", "words", on_parsing_failure="all")
    assert ["own"] == shown("words", max_retries=0, on_parsing_failure="none")
    with pytest.raises(InvalidInputError, match="'fly'"):
        shown(choose("fly"), max_retries=0)


def test_a_model_may_stand_in_for_tools(run: Runner) -> None:
    made_up = LLMToolEmulator(tools=["double"], model=ScriptedModel(["about two"]))
    assert ["about two"] == texts(played(run, [doubling(1), "ok"], made_up))


# -- files and shell -------------------------------------------------------------------------------------------------


def test_files_are_found_below_the_root_and_nowhere_else(run: Runner, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.py").write_text("import os\nx = 1\n")
    (root / "sub" / "b.py").write_text("import sys\n")
    (tmp_path / "secret.py").write_text("import secret\n")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    search = FilesystemFileSearchMiddleware(root_path=root)

    def asked(name: str, **args: Any) -> str:
        return texts(played(run, [call_tool(name, args), "ok"], search))[0]

    assert {"/a.py", "/sub/b.py"} == set(asked("glob_search", pattern="**/*.py").split())
    assert "/sub/b.py" == asked("glob_search", pattern="*.py", path="/sub")
    assert "/a.py\n/sub/b.py" == asked("grep_search", pattern="^import")
    assert "/a.py:2:x = 1" == asked("grep_search", pattern="x = .", output_mode="content")
    assert "/a.py:1" == asked("grep_search", pattern="import", include="a*", output_mode="count")
    assert "No matches found" == asked("grep_search", pattern="secret")
    assert "no directory here" in asked("glob_search", pattern="*", path="/..")
    assert "no regular expression" in asked("grep_search", pattern="(")


def test_a_shell_is_off_until_somebody_says_where_it_runs(run: Runner, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="execution_policy"):
        ShellToolMiddleware()

    def asked(command: str, seconds: float = 60) -> Any:
        policy = HostExecutionPolicy(command_timeout=seconds, max_output_lines=2)
        shell = ShellToolMiddleware(tmp_path, execution_policy=policy, redaction_rules=[RedactionRule("email")])
        result = played(run, [call_tool("shell", {"command": command}), "ok"], shell)
        return next(message for message in result["messages"] if message.type == "tool")

    assert "a\nb\n[1 more lines were cut]" == asked("echo a; echo b; echo c").text
    assert ("error", "[exit code 3]") == (asked("exit 3").status, asked("exit 3").text)
    assert "killed after 0.01 seconds" in asked("sleep 60", seconds=0.01).text
    assert "[REDACTED_EMAIL]" == asked("echo a@b.org").text
    assert "HOME PATH PWD" == " ".join(
        sorted(asked("env | cut -d= -f1 | sort | grep -v '^_' | tr '\\n' ' '").text.split()[:3])
    )
    docker = DockerExecutionPolicy(memory_bytes=1, cpus=1, user="u").argv("/bin/sh", "ls", tmp_path, {"A": "b"})
    assert {"--network", "none", "--read-only", "A=b"} <= set(docker)


# -- budgets ---------------------------------------------------------------------------------------------------------


def answer(text: str, tokens: int = 100) -> AIMessage:
    usage: Any = {"input_tokens": tokens, "output_tokens": tokens, "total_tokens": 2 * tokens}
    return AIMessage(text, usage_metadata=usage)


@pytest.mark.acceptance("S0-21")
def test_a_budget_goes_on_counting_in_every_attempt(run: Runner, saver: Any, thread: Thread) -> None:
    def fresh() -> Any:
        """The agent of a new process."""
        budget = BudgetMiddleware(max_tokens=500, prices={"scripted": (1.0, 2.0)})
        return create_agent(ScriptedModel([answer("ok")]), middleware=[budget], checkpointer=saver)

    spent = [run.invoke(fresh(), HI, thread("t"))["budget_spent"] for _ in range(3)]

    assert [1, 2, 3] == [one["calls"] for one in spent]
    assert [100, 200, 300] == [one["input_tokens"] for one in spent]
    assert [0.0003, 0.0006, 0.0009] == [pytest.approx(one["money"]) for one in spent]
    over = run.invoke(fresh(), HI, thread("t"))
    assert (3, True) == (over["budget_spent"]["calls"], "budget of 500 tokens" in over["messages"][-1].text)


def test_budgets_of_calls_seconds_and_money(run: Runner) -> None:
    ticks = iter(range(0, 1000, 10))
    looping: Any = lambda _: doubling(1)  # noqa: E731

    def spent(**options: Any) -> Any:
        return played(run, looping, BudgetMiddleware(**options))["budget_spent"]

    assert 3 == spent(max_calls=3)["calls"]
    assert 20 == spent(max_seconds=15, clock=lambda: next(ticks))["seconds"]
    with pytest.raises(DefinitionError, match="'scripted' has no price"):
        spent(max_money=1.0, prices={"another": (1.0, 1.0)})
    with pytest.raises(BudgetExceededError) as raised:
        spent(max_money=1e-9, prices={"scripted": (1.0, 1.0)}, exit_behavior="error")
    assert raised.value.spent["money"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs a limit"),
        ({"max_calls": -1}, "max_calls is -1"),
        ({"max_tokens": "500"}, "max_tokens is '500'"),
        ({"max_seconds": float("nan")}, "max_seconds is nan"),
        ({"max_money": 1.0}, "no model has a price"),
        ({"max_money": 1.0, "prices": {"m": 3}}, "price of 'm' is 3"),
        ({"max_calls": 1, "exit_behavior": "stop"}, "exit_behavior is 'stop'"),
    ],
)
def test_a_budget_that_would_limit_nothing_or_fail_later_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        BudgetMiddleware(**options)


@pytest.mark.acceptance("S0-22")
def test_an_attempt_that_died_is_closed_by_the_next_owner(run: Runner, saver: Any, thread: Thread) -> None:
    now = iter(range(1, 100))
    calls = iter([doubling(1), KeyboardInterrupt(), "ok"])

    def script(_: Any) -> Any:
        line = next(calls)
        if isinstance(line, BaseException):
            raise line
        return answer(line) if isinstance(line, str) else line

    agent = create_agent(
        ScriptedModel(script), [double], middleware=[AccountMiddleware(clock=lambda: next(now))], checkpointer=saver
    )
    with pytest.raises(KeyboardInterrupt):
        run.invoke(agent, HI, thread("t"))
    result = run.invoke(agent, None, thread("t"))

    died, done = result["attempts"].values()
    assert ("interrupted", "done") == (died["status"], done["status"])
    assert (True, True, 200, "scripted") == (
        died["completed"] is not None,
        done["completed"] > done["started"],
        done["tokens"],
        done["model"],
    )
