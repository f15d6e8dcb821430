"""`pregel.lint`: each rule of docs/lint.md with its examples, and the code that no rule may speak of."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from pregel.lint import RULES, check_file, check_source

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "lint.md"
SECTION = re.compile(r"^## (?P<rule>PG\d+): .*?$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = """
import random
import time
import requests
from pregel import Runtime, StateGraph, get_runtime, interrupt
from pregel.agents import init_chat_model, tool
from pregel.func import entrypoint, task

model = init_chat_model("openai:gpt")
tools = {}

@task
def pay(amount):
    ...

"""

needs_docs = pytest.mark.skipif(not PAGE.is_file(), reason="needs the documents")


def sections() -> list[tuple[str, str, str]]:
    """(rule, bad example, good example) of the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    found = []
    for section in SECTION.finditer(text):
        bad, good = (fence["code"] for fence in FENCE.finditer(section["text"]))
        found.append((section["rule"], bad, good))
    return found


def rules_of(code: str) -> list[str]:
    """The rules that a function called `node` or `flow` breaks, in order; nodes are told by their name."""
    source = HEAD + dedent(code) + "\nStateGraph(dict).add_node('node', node)\n"
    return [problem.rule for problem in check_source(source)]


@needs_docs
@pytest.mark.acceptance("S0-16", "S4-10", "S4-12")
@pytest.mark.parametrize(("rule", "bad", "good"), [pytest.param(*one, id=one[0]) for one in sections()])
def test_the_bad_example_of_a_rule_is_found_where_it_says_and_the_good_one_is_not(
    rule: str, bad: str, good: str
) -> None:
    marked = [number for number, line in enumerate(bad.splitlines(), 1) if line.endswith(f"# {rule}")]

    found = [(problem.line, problem.rule) for problem in check_source(bad) if problem.line in marked]

    assert [(line, rule) for line in marked] == found
    assert {rule} == {problem.rule for problem in check_source(bad)}
    assert [] == check_source(good)


@needs_docs
def test_every_rule_is_on_the_page() -> None:
    assert set(RULES) == {"PG001", *(rule for rule, _, _ in sections())}


@pytest.mark.skipif(not (TOP / "pregel").is_dir(), reason="needs the source")
def test_the_examples_and_documents_of_this_repository_raise_no_alarm() -> None:
    files = [*(TOP / "examples").glob("*.py"), *(TOP / "pregel").rglob("*.py")]
    pages = [page for page in [TOP / "README.md", *(TOP / "docs").glob("*.md")] if page != PAGE]
    blocks = [(page, block["code"]) for page in pages for block in FENCE.finditer(page.read_text(encoding="utf-8"))]

    found = [problem for file in files for problem in check_file(file)]
    found += [problem for page, code in blocks for problem in check_source(code, page.name)]

    assert [] == found
    assert len(files) > 100
    assert len(blocks) > 50


@pytest.mark.acceptance("S4-10")
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("time.time()", "PG101"),
        ("random.random()", "PG102"),
        ("random.Random()", "PG102"),
        ("time.sleep(1)", "PG103"),
        ("open('orders.csv')", "PG104"),
        ("requests.get('https://shop')", "PG104"),
        ("__import__('os')", None),
        ("random.Random(7).random()", None),
        ("runtime.step('now', time.time)", None),
        ("runtime.step('now', lambda: time.time())", None),
        ("print('on it')", None),
    ],
)
def test_what_gives_something_else_is_found_in_an_entrypoint_and_before_a_question_and_nowhere_else(
    line: str, rule: str | None
) -> None:
    expected = [] if rule is None else [rule]
    entry = f"""
        @entrypoint()
        def flow(x, *, runtime: Runtime):
            helper(runtime)
            return pay(x).result()

        def helper(runtime):
            return {line}

        node = flow
    """
    asking = f"def node(state, runtime: Runtime):\n    {line}\n    return interrupt('?')"
    answered = f"def node(state, runtime: Runtime):\n    interrupt('?')\n    return {line}"
    in_a_loop = f"def node(state, runtime: Runtime):\n    while interrupt('?') != 'ok':\n        {line}"

    assert expected == rules_of(entry)
    assert expected == rules_of(asking)
    assert [] == rules_of(answered)
    assert expected == rules_of(in_a_loop)


@pytest.mark.acceptance("S0-16")
@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("a = model.invoke('x'); return runtime.step('final', lambda: a)", ["PG201"]),
        ("tools['a'].invoke(1); return interrupt('?')", ["PG201"]),
        ("tools['a'].invoke(1); return pay(1).result()", ["PG201"]),
        ("return model.invoke('x')", []),  # the node is the boundary
        ("return runtime.step('answer', lambda: model.invoke('x'))", []),
        ("requests.post('u', headers={'Idempotency-Key': runtime.idempotency_key}); return model.invoke('x')", []),
        ("requests.post('u'); return model.invoke('x')", ["PG201", "PG202"]),
        ("return model.invoke('x') if state['a'] else tools['b'].invoke(1)", []),  # one of them
        ("return runtime.step('paid', lambda: requests.post('u'))", ["PG202"]),
        ("return runtime.effect('paid', lambda key: requests.post('u', json={'key': key}))", []),
        ("key = runtime.idempotency_key; return requests.post('u', headers=h(key))", []),
        ("return requests.post('u', auth=api_key)", ["PG202"]),
        ("return requests.put('u')", []),
    ],
)
def test_calls_outside_of_boundaries_and_writes_without_a_key(body: str, rules: list[str]) -> None:
    lines = "\n    ".join(body.split("; "))

    assert rules == rules_of(f"def node(state, runtime: Runtime):\n    {lines}")


@pytest.mark.parametrize("pause", ["sleep(60)", "sleep_until(due)", "wait_for_event('paid')"])
def test_a_node_runs_again_after_a_wait_as_after_a_question(pause: str) -> None:
    body = f"""
        from pregel.waits import sleep, sleep_until, wait_for_event

        def node(state):
            at = time.time()
            {pause}
            return {{"at": at}}
        """

    assert ["PG101"] == rules_of(body)


def test_what_ends_a_branch_is_followed_by_nothing() -> None:
    ended = """
        def node(state):
            if state["a"]:
                return model.invoke("x")
            return model.invoke("y")
    """
    open_end = """
        def node(state):
            if state["a"]:
                state = model.invoke("x")
            return model.invoke("y")
    """

    assert [] == rules_of(ended)
    assert ["PG201"] == rules_of(open_end)


@pytest.mark.acceptance("S4-12")
@pytest.mark.parametrize(
    "body",
    [
        "if not runtime.is_replaying:\n        pay(1).result()",
        "if get_runtime().is_replaying:\n        return\n    interrupt('?')",
        "fresh = not runtime.is_replaying\n    if fresh and state:\n        runtime.effect('a', print)",
        "return runtime.is_replaying or interrupt('?')",
        "return None if runtime.is_replaying else interrupt('?')",
        "if not runtime.is_replaying:\n        helper()",
    ],
)
def test_work_that_depends_on_the_flag_is_found(body: str) -> None:
    helper = "def helper():\n    return interrupt('?')\n"

    assert ["PG301"] == rules_of(f"{helper}def node(state, runtime: Runtime):\n    {body}")


def test_telling_may_depend_on_the_flag() -> None:
    body = "if not runtime.is_replaying:\n        print('on it')\n    return interrupt('?')"

    assert [] == rules_of(f"def node(state, runtime: Runtime):\n    {body}")


def test_a_comment_switches_a_rule_off_for_a_call() -> None:
    source = "def node(state):\n    time.time({0})  # pregel: ignore{1}\n    interrupt('?')"

    assert [] == rules_of(source.format("", ""))
    assert [] == rules_of(source.format("", "[PG101]"))
    assert [] == rules_of(source.format("\n", "[PG102, PG101]"))
    assert ["PG101"] == rules_of(source.format("", "[PG102]"))


def test_what_is_no_python_is_a_problem_and_code_of_others_is_none() -> None:
    (broken,) = check_source("def node(:", "shop.py")

    assert ("shop.py", 1, "PG001") == (broken.file, broken.line, broken.rule)
    assert [] == check_source("import time\ndef add_node(f): ...\nadd_node(time.sleep)")
    assert [] == check_source("from celery import task\n@task\ndef f():\n    import requests\n    requests.post('u')")
