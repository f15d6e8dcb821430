"""Pictures of graphs: Mermaid text, SVG, PNG and text; nothing overlaps, dashes and marks say what they mean."""

from __future__ import annotations

import io
import operator
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, TypedDict
from xml.etree import ElementTree

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.cli import main
from pregel.graph import END, START, StateGraph
from pregel.graph.draw import Graph
from pregel.graph.draw.layout import Line, lay_out
from pregel.graph.draw.mermaid import escaped
from pregel.types import interrupt

SVG = "{http://www.w3.org/2000/svg}"


class State(TypedDict, total=False):
    a: Annotated[list[str], operator.add]


def nothing(state: State) -> dict[str, Any]:
    return {}


def path(state: State) -> str:
    return END


def graph_of(*names: str) -> StateGraph[Any]:
    graph: StateGraph[Any] = StateGraph(State)
    for name in names:
        graph.add_node(name, nothing)
    return graph


def agent() -> StateGraph[Any]:
    graph = graph_of("model", "tools").add_edge(START, "model").add_edge("tools", "model")
    return graph.add_conditional_edges("model", path, ["tools", END])


def research() -> StateGraph[Any]:
    graph = graph_of("plan", "web", "docs", "write", "review").add_node("merge", nothing, defer=True)
    graph.add_edge(START, "plan").add_edge("merge", "write").add_edge("write", "review")
    for search in ("web", "docs"):
        graph.add_edge("plan", search).add_edge(search, "merge")
    return graph.add_conditional_edges("review", path, {"unclear": "plan", "rewrite": "write", "accepted": END})


def nested() -> StateGraph[Any]:
    inner = graph_of("fetch", "store").add_edge(START, "fetch").add_edge("fetch", "store")
    graph = graph_of("intake", "notify").add_node("crawl", inner.compile())
    return graph.add_edge(START, "intake").add_edge("intake", "crawl").add_edge("intake", "notify")


def looping() -> StateGraph[Any]:
    graph = graph_of("try & <wait>", "ünïcode 漢字").add_edge(START, "try & <wait>")
    graph.add_conditional_edges("try & <wait>", path, {"again": "try & <wait>", "enough": "ünïcode 漢字"})
    return graph


GRAPHS = [agent, research, nested, looping]


@pytest.fixture(params=GRAPHS, ids=lambda made: made.__name__)
def drawn(request: pytest.FixtureRequest) -> Graph:
    picture: Graph = request.param().compile().get_graph(xray=True)
    return picture


# -- Mermaid -----------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-20")
def test_an_agents_choices_are_dashed_and_its_way_back_is_solid() -> None:
    assert agent().compile().get_graph().draw_mermaid() == (
        "---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n"
        "\t__start__([<p>__start__</p>]):::first\n\tmodel(model)\n\ttools(tools)\n"
        "\t__end__([<p>__end__</p>]):::last\n"
        "\t__start__ --> model;\n\tmodel -.-> __end__;\n\tmodel -.-> tools;\n\ttools --> model;\n"
        "\tclassDef default fill:#f2f0ff,line-height:1.2\n\tclassDef first fill-opacity:0\n"
        "\tclassDef last fill:#bfb6fc\n"
    )


@pytest.mark.acceptance("S1-20")
def test_all_edges_of_a_looping_agent_are_dashed() -> None:
    graph = graph_of("model", "tools").add_edge(START, "model").add_conditional_edges("model", path, ["tools", END])

    text = graph.add_conditional_edges("tools", path, ["model"]).compile().get_graph().draw_mermaid()

    for edge in ("model -.-> tools", "model -.-> __end__", "tools -.-> model"):
        assert f"\t{edge};\n" in text


def test_mermaid_shows_labels_metadata_and_subgraphs() -> None:
    review = research().compile(interrupt_before=["merge"]).get_graph().draw_mermaid()
    inside = nested().compile().get_graph(xray=True).draw_mermaid(with_styles=False)

    assert "\treview -. &nbsp;accepted&nbsp; .-> __end__;\n" in review
    assert "\tmerge(merge<hr/><small><em>defer = True\n__interrupt = before</em></small>)\n" in review
    assert "\tintake --> crawl\\3afetch;\n" in inside
    assert "\tsubgraph crawl\n\tcrawl\\3afetch --> crawl\\3astore;\n\tend\n" in inside
    assert inside.startswith("graph TD;\n")
    assert escaped("a:b c") == "a\\3ab\\20c"


def test_a_label_that_would_be_markdown_is_marked_as_text_in_mermaid() -> None:
    inner = StateGraph(State).add_node("_x_", nothing).add_node("_y", nothing).add_edge(START, "_x_")

    text = inner.add_edge("_x_", "_y").compile().get_graph().draw_mermaid()

    assert "\t_x_(<p>_x_</p>)\n\t_y(_y)\n" in text


# -- SVG and PNG -------------------------------------------------------------------------------------------------------


def shapes(drawn: Graph, **options: Any) -> tuple[Any, list[Any]]:
    root = ElementTree.fromstring(drawn.draw_svg(**options))
    return root, list(root)


def test_an_svg_is_valid_and_names_every_node_and_label(drawn: Graph) -> None:
    root, _ = shapes(drawn)

    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {node.name for node in drawn.nodes.values()} - {START, END} <= texts
    assert {edge.data for edge in drawn.edges if edge.data} <= texts
    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    assert not [item for item in root.iter() if item.tag.endswith(("script", "image", "foreignObject"))]


def test_an_edge_is_dashed_when_it_is_taken_sometimes(drawn: Graph) -> None:
    _, items = shapes(drawn)

    edges = [item for item in items if item.tag == f"{SVG}path"]
    assert len(edges) == len(drawn.edges)
    assert sum("stroke-dasharray" in edge.attrib for edge in edges) == sum(edge.conditional for edge in drawn.edges)


def test_nothing_stands_on_anything_else(drawn: Graph) -> None:
    _, items = shapes(drawn)

    page, *boxes = [item for item in items if item.tag == f"{SVG}rect"]
    found = [tuple(float(box.get(name) or 0) for name in ("x", "y", "width", "height")) for box in boxes]
    for x, y, width, height in found:
        assert x >= 0
        assert y >= 0
        assert x + width <= float(page.get("width") or 0)
        assert y + height <= float(page.get("height") or 0)
    for one, other in combinations(found, 2):
        assert apart(one, other) or inside(one, other) or inside(other, one)


def apart(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return any(one[i] + one[i + 2] <= other[i] or other[i] + other[i + 2] <= one[i] for i in (0, 1))


def inside(inner: tuple[float, ...], outer: tuple[float, ...]) -> bool:
    return all(outer[i] <= inner[i] and inner[i] + inner[i + 2] <= outer[i] + outer[i + 2] for i in (0, 1))


def test_a_png_is_painted_here_and_has_the_size_of_the_svg(drawn: Graph, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'pregel[draw]'")
    root, _ = shapes(drawn)

    picture = drawn.draw_png(str(tmp_path / "g.png"), scale=1.0)

    assert (tmp_path / "g.png").read_bytes() == picture
    with image.open(io.BytesIO(picture)) as opened:
        assert opened.size == (int(root.get("width")), int(root.get("height")))
        assert len(opened.convert("L").getcolors() or ()) > 20


def test_a_notebook_gets_an_svg_and_a_text(drawn: Graph) -> None:
    bundle = drawn._repr_mimebundle_()

    assert set(bundle) == {"image/svg+xml", "text/plain"}
    assert bundle["image/svg+xml"].startswith("<svg ")


# -- text --------------------------------------------------------------------------------------------------------------


def test_a_graph_as_text() -> None:
    graph = graph_of("a", "b").add_edge(START, "a").add_conditional_edges("a", path, {"go": "b", END: END})

    text = graph.compile().get_graph().draw_ascii()

    for part in ("│ start │", "│ a │", "│ b │", "│ end │", " go\n", "▼", "┊"):
        assert part in text
    assert {len(line) == len(line.rstrip()) for line in text.splitlines()} == {True}


def test_every_node_and_label_is_in_the_text(drawn: Graph) -> None:
    text = drawn.draw_ascii()

    for id in set(drawn.nodes) - {START, END}:
        assert f"│ {id} │" in text
    for edge in drawn.edges:
        assert (edge.data or "") in text


# -- the layout --------------------------------------------------------------------------------------------------------


def many() -> Iterator[list[tuple[str, str]]]:
    for seed in range(60):
        count = 2 + seed % 7
        pairs = [(f"n{i}", f"n{(i * (seed + 3) + seed) % count}") for i in range(count)]
        yield sorted({*pairs, *((f"n{i}", f"n{i + 1}") for i in range(count - 1))})


@pytest.mark.parametrize("edges", list(many()))
def test_a_layout_keeps_nodes_apart_and_leads_every_edge_from_border_to_border(edges: list[tuple[str, str]]) -> None:
    sizes = {node: (60.0, 30.0) for edge in edges for node in edge}
    lines = [Line(source, target) for source, target in edges]

    placed = lay_out(sizes, lines, first="n0")

    corners = {id: (x - 30, y - 15, 60.0, 30.0) for id, (x, y) in placed.centres.items()}
    assert all(apart(one, other) for one, other in combinations(corners.values(), 2))
    for line in (line for line in placed.lines if line.source != line.target):
        for (x, y), end in ((line.points[0], line.source), (line.points[-1], line.target)):
            centre = placed.centres[end]
            assert abs(x - centre[0]) <= 30
            assert abs(abs(y - centre[1]) - 15) < 1e-6
    assert placed == lay_out(sizes, [Line(*edge) for edge in edges], first="n0")


# -- the state of a run ------------------------------------------------------------------------------------------------


def half_done() -> Any:
    def ask(state: State) -> dict[str, Any]:
        return {"a": [interrupt("ok?")]}

    graph = graph_of("order", "stock", "ship").add_node("payment", ask).add_edge(START, "order")
    graph.add_edge("order", "stock").add_edge("order", "payment").add_edge(["stock", "payment"], "ship")
    app = graph.compile(checkpointer=InMemorySaver())
    app.invoke({"a": []}, {"configurable": {"thread_id": "t"}})
    return app


def test_a_run_is_drawn_on_its_graph() -> None:
    app = half_done()
    history = list(app.get_state_history({"configurable": {"thread_id": "t"}}))

    text = app.get_graph().draw_ascii(run=history)
    _, items = shapes(app.get_graph(), run=history)

    for part in ("✓ order", "✓ stock", "‖ payment", "│ ship │"):
        assert part in text
    assert {"done", "waiting"} <= {item.text for item in items if item.tag == f"{SVG}text"}
    now = app.get_graph().draw_ascii(run=app.get_state({"configurable": {"thread_id": "t"}}))
    assert "│ order │" in now  # a snapshot knows its own step only


def test_what_failed_and_what_is_to_run_show() -> None:
    def fail(state: State) -> None:
        raise RuntimeError("no")

    graph = graph_of("a").add_node("bad", fail).add_edge(START, "a").add_edge("a", "bad")
    app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["bad"])
    config: Any = {"configurable": {"thread_id": "t"}}

    app.invoke({"a": []}, config)
    assert "▶ bad" in app.get_graph().draw_ascii(run=list(app.get_state_history(config)))
    with pytest.raises(RuntimeError, match="no"):
        app.invoke(None, config)
    assert "✗ bad" in app.get_graph().draw_ascii(run=list(app.get_state_history(config)))


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "start"), [("g.svg", b"<svg "), ("g.png", b"\x89PNG"), ("g.mmd", b"---"), ("g.txt", "╭───────╮".encode())]
)
def test_the_command_draws_a_file(name: str, start: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "drawn_by_command.py"
    module.write_text(
        "from pregel.graph import START, StateGraph\n"
        "graph = StateGraph(dict).add_node('a', lambda state: {}).add_edge(START, 'a')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    assert main(["draw", "drawn_by_command:graph", "-o", str(tmp_path / name)]) == 0

    assert (tmp_path / name).read_bytes().startswith(start)
    assert main(["draw", "drawn_by_command:graph", "-o", "g.gif"]) == 2


def test_the_command_marks_what_ended_inside_of_subgraphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "drawn_inside.py").write_text(
        "from pregel.graph import START, StateGraph\n"
        "inner = StateGraph(dict).add_node('a', lambda state: {}).add_edge(START, 'a').compile()\n"
        "graph = StateGraph(dict).add_node('inner', inner).add_edge(START, 'inner')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "drawn_inside:graph", "--input", "{}", "--thread", "t"]) == 0
    capsys.readouterr()

    assert main(["draw", "drawn_inside:graph", "--thread", "t", "--xray"]) == 0

    assert "✓ inner:a" in capsys.readouterr().out
