"""Programs written by hand: the reference traces of the specification, and each rule of resume, update and travel."""

from __future__ import annotations

from dataclasses import replace

from tests.differential.program import (
    END,
    START,
    Answer,
    Bulk,
    Go,
    Mend,
    Node,
    Op,
    Program,
    Route,
    Run,
    Steer,
    Update,
)


def node(name: str, **rules: object) -> Node:
    """A node that logs its name."""
    return replace(Node(name, writes=(("log", "name"),)), **rules)  # type: ignore[arg-type]


def calls(program: Program, *ops: Op, **changed: object) -> Program:
    """The program with other calls, or other settings."""
    return replace(program, ops=ops or program.ops, **changed)  # type: ignore[arg-type]


CHAIN = Program(
    nodes=(node("n1"), node("n2", writes=(("log", "name"), ("b", "name")))),
    edges=((START, "n1"), ("n1", "n2")),
    channels=(("b", "last"),),
)
THREE = Program(nodes=(node("a"), node("b"), node("c")), edges=((START, "a"), ("a", "b"), ("b", "c"), ("c", END)))
JOIN = Program(nodes=(node("j"), node("p"), node("q")), edges=((START, "p"), (START, "q")), joins=((("p", "q"), "j"),))
SENDS = Program(nodes=(node("w"),), entry=Route(picks=(("*w", "*w"),), by="log"))
ASK = Program(nodes=(node("x"), node("y", asks=1), node("z")), edges=((START, "x"), (START, "y"), ("y", "z")))
ASK_BOTH = Program(nodes=(node("x", asks=1), node("y", asks=1)), edges=((START, "x"), (START, "y")))
ASK_TWICE = Program(nodes=(node("n", asks=2), node("m")), edges=((START, "n"), ("n", "m")))
FAIL = Program(
    nodes=(node("x"), node("y", fails="ValueError"), node("z")), edges=((START, "x"), (START, "y"), ("y", "z"))
)
DIAMOND = Program(
    nodes=(node("a"), node("b"), node("c"), node("d")), edges=((START, "a"), ("a", "b"), ("a", "d"), ("b", "c"))
)
LOOP = Program(
    nodes=(node("a", branches=(Route(picks=(("b",), ("a",)), until=5, labels="dict"),)), node("b")),
    edges=((START, "a"), ("b", "a")),
)

# The traces of the specification, section 13, whose stored checkpoints are compared as well.
TRACES = {
    "13.1 linear": CHAIN,
    "13.2 fan-in": JOIN,
    "13.3 two sends": SENDS,
    "13.4 one asks beside one that ends": calls(ASK, Run(), Answer("plain")),
    "13.5 defer": Program(
        nodes=(node("a1"), node("b1"), node("d", defer=True)), edges=((START, "a1"), ("a1", "b1"), ("a1", "d"))
    ),
    "13.6 one fails beside one that ends": FAIL,
    "13.8 update as a node": calls(CHAIN, Run(), Update(node="n1"), Go()),
}

RESUMED = {
    "resume after an error runs only what failed": calls(FAIL, Run(), Go(), Mend(), Go()),
    "new input after an error drops the step": calls(FAIL, Run(), Mend(), Run("again")),
    "update as the failed node": calls(FAIL, Run(), Update(node="y"), Go()),
    "update as the sibling of the failed node": calls(FAIL, Run(), Update(node="x"), Mend(), Go()),
    "travel to before an error": calls(FAIL, Run(), Mend(), Go(), Go(back=2)),
    "None on a fresh thread": calls(THREE, Go()),
    "None on a finished thread": calls(THREE, Run(), Go()),
    "a second input": calls(THREE, Run(), Run("again")),
    "a second input counts a join anew": calls(JOIN, Run(), Run("again")),
    "a second input on a paused thread": calls(THREE, Run(), Run("again"), Go(), before=("b",)),
    "a limit one too small": calls(THREE, Run(), Go(), limit=3),
    "a limit just large enough": calls(THREE, Run(), limit=4),
    "a limit that a resumed run meets again": calls(
        replace(LOOP, nodes=(node("a", branches=(Route(picks=(("b",),), until=99),)), node("b"))), Run(), Go(), limit=4
    ),
}

QUESTIONS = {
    "two questions of one node": calls(ASK_TWICE, Run(), Answer("plain"), Answer("plain")),
    "two questions of one node by id": calls(ASK_TWICE, Run(), Answer(), Answer()),
    "two nodes ask, one by one": calls(ASK_BOTH, Run(), Answer("first"), Answer("plain")),
    "two nodes ask, both at once": calls(ASK_BOTH, Run(), Answer()),
    "two nodes ask, one plain answer": calls(ASK_BOTH, Run(), Answer("plain"), Answer()),
    "asked again by None": calls(ASK, Run(), Go(), Answer()),
    "new input instead of an answer": calls(ASK, Run(), Run("again"), Answer()),
    "update as the node that asks": calls(ASK, Run(), Update(node="y"), Go()),
    "update as START while asked": calls(ASK, Run(), Update(node=START), Go(), Answer()),
    "update that ends it": calls(ASK, Run(), Update(text=None, node=END), Go()),
    "travel to before an answer": calls(ASK, Run(), Answer(), Go(back=2), Answer()),
    "travel to the question": calls(ASK_TWICE, Run(), Answer("plain"), Go(back=0), Answer()),
    "steered away from a question": calls(ASK, Run(), Steer("z"), Answer()),
    "questions of sends": Program(
        nodes=(node("w", asks=1),),
        entry=Route(picks=(("*w", "*w", "*w"),), by="log"),
        ops=(Run(), Answer("first"), Answer()),
    ),
}

UPDATES = {
    "on a fresh thread": calls(THREE, Update(), Go()),
    "on a fresh thread as START": calls(THREE, Update(node=START), Go()),
    "on a fresh thread as a node": calls(THREE, Update(node="b"), Go()),
    "as whoever ran last": calls(THREE, Run(), Update(), Go(), before=("c",)),
    "ambiguous after two": calls(JOIN, Run(), Update(), Update(node="q"), Go(), before=("j",)),
    "as a node that does not exist": calls(THREE, Run(), Update(node="nobody")),
    "without values": calls(THREE, Run(), Update(text=None, node="a"), Go()),
    "as END": calls(THREE, Run(), Update(text=None, node=END), Go(), before=("b",)),
    "as END with values": calls(THREE, Run(), Update(node=END), before=("b",)),
    "as input": calls(THREE, Update(node="__input__"), Go()),
    "as input on a finished thread": calls(THREE, Run(), Update(node="__input__"), Go()),
    "as a copy": calls(THREE, Run(), Update(text=None, node="__copy__", back=1), Go()),
    "that routes": calls(LOOP, Run(), Update(node="a"), Go()),
    "of an old checkpoint": calls(THREE, Run(), Update(node="a", back=2), Go()),
    "past a pause": calls(THREE, Run(), Update(node="b"), Go(), before=("b",)),
    "as one of a join": calls(JOIN, Update(node="p"), Update(node="q"), Go()),
    "as the target of a full join": calls(JOIN, Run(), Update(node="j"), Go(), before=("j",)),
    "as a deferred node": calls(
        replace(THREE, nodes=(node("a"), node("b"), node("c", defer=True))), Run(), Update(node="c"), before=("c",)
    ),
    "in bulk": calls(THREE, Bulk(((("1", START),), (("2", "a"),), (("3", "b"),))), Go()),
    "in bulk, two at once": calls(JOIN, Bulk(((("1", "p"), ("2", "q")),)), Go()),
    "in bulk of nothing": calls(THREE, Bulk(())),
    "in bulk with an empty step": calls(THREE, Bulk(((),))),
}

TRAVEL = {
    **{f"to checkpoint {back}": calls(THREE, Run(), Go(back=back)) for back in range(5)},
    **{f"with new input to checkpoint {back}": calls(THREE, Run(), Run("again", back=back)) for back in range(5)},
    "twice from one place": calls(THREE, Run(), Go(back=2), Go(back=4)),
    "to an update": calls(THREE, Run(), Update(node="a", back=2), Go(back=0), Go(back=0)),
    "to a superseded update": calls(THREE, Run(), Update(node="a", back=2), Go(), Go(back=2)),
    "over a join": calls(JOIN, Run(), Go(back=1), Go(back=2)),
    "over sends": calls(SENDS, Run(), Go(back=1)),
    "to a pause": calls(THREE, Run(), Go(), Go(back=1), before=("b",)),
    "then new input on the new branch": calls(THREE, Run(), Go(back=2), Run("again")),
}

PAUSES = {
    "before": calls(THREE, Run(), Go(), Go(), before=("b",)),
    "after": calls(THREE, Run(), Go(), Go(), after=("b",)),
    "before and after": calls(THREE, Run(), Go(), Go(), Go(), before=("b",), after=("b",)),
    "before all": calls(THREE, Run(), Go(), Go(), Go(), before=("*",)),
    "after all": calls(THREE, Run(), Go(), Go(), Go(), after=("*",)),
    "before the first": calls(THREE, Run(), Go(), before=("a",)),
    "after the last": calls(THREE, Run(), Go(), after=("c",)),
    "in a loop": calls(LOOP, Run(), Go(), Go(), Go(), before=("a",)),
    "beside a sibling": calls(JOIN, Run(), Go(), before=("p",)),
    "passed by a command": calls(THREE, Run(), Steer("c"), Go(), before=("b",)),
    "before sends": calls(SENDS, Run(), Go(), before=("w",)),
}

DURABILITY = {
    f"{name} under {durability}": calls(program, durability=durability)
    for durability in ("exit", "async")
    for name, program in {
        "a chain": calls(THREE, Run(), Run("again")),
        "a failure": calls(FAIL, Run(), Mend(), Go()),
        "a question": calls(ASK, Run(), Answer()),
        "a pause": calls(THREE, Run(), Go(), before=("b",)),
        "travel": calls(THREE, Run(), Run("again"), Go(back=1)),
        "an update": calls(THREE, Run(), Update(node="a"), Go()),
        "a limit": calls(THREE, Run(), Go(), limit=2),
    }.items()
}

SHAPES = {
    "unequal branches run the end twice": replace(DIAMOND, edges=(*DIAMOND.edges, ("c", "d"))),
    "deferred it runs once": replace(
        DIAMOND, nodes=(*DIAMOND.nodes[:3], node("d", defer=True)), edges=(*DIAMOND.edges, ("c", "d"))
    ),
    "joined it runs once": replace(
        DIAMOND,
        edges=(*DIAMOND.edges[:2], ("b", "c"), ("a", "e")),
        joins=((("c", "e"), "d"),),
        nodes=(*DIAMOND.nodes, node("e")),
    ),
    "a loop": LOOP,
    "a loop back to one member of a join": replace(
        JOIN,
        nodes=(node("j", branches=(Route(picks=((), (), ("p",), ("p",), ("p",)), until=5),)), node("p"), node("q")),
    ),
    "a deferred join": replace(JOIN, nodes=(node("j", defer=True), *JOIN.nodes[1:])),
    "two joins on one node": replace(
        JOIN, nodes=(*JOIN.nodes, node("r")), edges=(*JOIN.edges, ("j", "r")), joins=(*JOIN.joins, (("q", "j"), "r"))
    ),
    "a join that starves": Program(
        nodes=(node("a", branches=(Route(picks=(("b",),), until=9),)), node("b"), node("c"), node("d")),
        edges=((START, "a"), ("c", END)),
        joins=((("b", "c"), "d"),),
        ops=(Run(), Run("again"), Update(node="c"), Go()),
    ),
    "two writers of one value": Program(
        nodes=(node("x", writes=(("v", "name"),)), node("y", writes=(("v", "name"),))),
        edges=((START, "x"), (START, "y")),
        channels=(("v", "last"),),
        ops=(Run(), Go()),
    ),
    "two overwrites": Program(
        nodes=(node("x", writes=(("v", "over"),)), node("y", writes=(("v", "over"),))),
        edges=((START, "x"), (START, "y")),
        channels=(("v", "tail"),),
    ),
    "an overwrite among writes": Program(
        nodes=tuple(node(name, writes=(("v", how),)) for name, how in (("x", "size"), ("y", "over"), ("z", "size"))),
        edges=((START, "x"), (START, "y"), (START, "z")),
        channels=(("v", "tail"),),
        ops=(Run(), Run("again")),
    ),
    "twelve sends beside edges, in order": Program(
        nodes=(node("w", writes=(("log", "size"),)), node("zz"), node("aa")),
        entry=Route(picks=(("*w",) * 12,), by="log"),
        edges=((START, "zz"), (START, "aa")),
        channels=(),
    ),
    "sends of sends": Program(
        nodes=(node("w", returns="command", goto=Route(picks=(("*w", "*v"),), until=9)), node("v")),
        entry=Route(picks=(("*w", "v"),), by="log"),
    ),
    "a command beside an edge": Program(
        nodes=(node("a", returns="command", goto=Route(picks=(("b",),))), node("b"), node("c")),
        edges=((START, "a"), ("a", "c")),
    ),
    "a command to END beside an edge": Program(
        nodes=(node("a", returns="command", goto=Route(picks=((END,),))), node("c")), edges=((START, "a"), ("a", "c"))
    ),
    "pieces": Program(
        nodes=(node("a", returns="pieces", goto=Route(picks=(("b", "*b"),))), node("b", returns="nothing")),
        edges=((START, "a"),),
    ),
    "a router sees its own node's writes, not a sibling's": Program(
        nodes=(node("m"), node("n", branches=(Route(picks=(("p",), ("q",), ("r",)), until=9),)), *map(node, "pqr")),
        edges=((START, "m"), (START, "n")),
    ),
    "nothing to do": Program(
        nodes=(node("a"),), entry=Route(picks=((END,),), by="log"), ops=(Run(), Go(), Run("again"))
    ),
    "every kind of channel": Program(
        nodes=tuple(
            node(name, writes=tuple((f"{key}_{name}", "size") for key in ("to", "pi", "ep", "an", "un")))
            for name in "abc"
        ),
        edges=THREE.edges,
        channels=tuple(
            (f"{kind[:2]}_{name}", kind)
            for kind in ("topic", "pile", "ephemeral", "any", "untracked")
            for name in "abc"
        ),
        ops=(Run(), Go(back=2), Run("again")),
    ),
}

TWO = Program(nodes=(node("k"), node("l")), edges=((START, "k"), ("k", "l")))
INNER_ASK = Program(nodes=(node("k"), node("l", asks=1)), edges=((START, "k"), ("k", "l")))
INNER_FAIL = Program(nodes=(node("k"), node("l", fails="ValueError")), edges=((START, "k"), ("k", "l")))


def around(child: Program, *ops: Op, **rules: object) -> Program:
    """A graph a -> s -> z in which s is the child."""
    inner = Node("s", child=child, **rules)  # type: ignore[arg-type]
    return Program(
        nodes=(node("a"), inner, node("z")),
        edges=((START, "a"), ("a", "s"), ("s", "z")),
        durability="async" if inner.keeps == "nothing" else "sync",  # sync without a saver breaks the reference
        ops=ops or (Run(),),
    )


TWICE = Program(
    nodes=(node("a", branches=(Route(picks=(("s",),), until=5),)), Node("s", child=TWO, keeps="thread")),
    edges=((START, "a"), ("s", "a")),
)
LOOPS = Program(
    nodes=(Node("s", child=Program(nodes=(node("k"),), edges=((START, "k"),)), keeps="thread"),),
    edges=((START, "s"), ("s", "s")),
    limit=3,
)
SUBGRAPHS = {
    "runs": around(TWO, Run(), Run("again")),
    "remembers over calls": around(TWO, Run(), Run("again"), keeps="thread"),
    "is never stored": around(TWO, Run(), Run("again"), keeps="nothing"),
    "asks": around(INNER_ASK, Run(), Answer()),
    "asks and gets a plain answer": around(INNER_ASK, Run(), Answer("plain")),
    "asks and remembers over calls": around(INNER_ASK, Run(), Answer(), Run("again"), Answer(), keeps="thread"),
    "asks and is never stored": around(INNER_ASK, Run(), Answer("plain"), keeps="nothing"),
    "asks again after travel": around(INNER_ASK, Run(), Answer(), Go(back=2), Answer()),
    "fails and is mended": around(INNER_FAIL, Run(), Go(), Mend(), Go()),
    "fails and is never stored": around(INNER_FAIL, Run(), Mend(), Go(), keeps="nothing"),
    "fails, is mended and remembers": around(INNER_FAIL, Run(), Mend(), Go(), Run("again"), keeps="thread"),
    "is passed by an update": around(INNER_ASK, Run(), Update(node="s"), Go()),
    "is travelled over": around(TWO, Run(), Go(back=2), Go(back=1)),
    "is travelled over and remembers": around(TWO, Run(), Run("again"), Go(back=2), keeps="thread"),
    "pauses": around(replace(TWO, before=("l",)), Run(), Go(), Go()),
    "routes its parent": around(
        Program(nodes=(node("k", returns="parent", goto=Route(picks=(("z",),), until=99)),), edges=((START, "k"),))
    ),
    "three deep": around(around(INNER_ASK), Run(), Answer()),
    "two of them ask beside each other": Program(
        nodes=(Node("r", child=INNER_ASK), Node("s", child=INNER_ASK)),
        edges=((START, "r"), (START, "s")),
        ops=(Run(), Answer("first"), Answer()),
    ),
    "by sends": Program(
        nodes=(Node("s", child=INNER_ASK),), entry=Route(picks=(("*s", "*s"),), by="log"), ops=(Run(), Answer())
    ),
    "remembers within a call": TWICE,
    "remembers within a call under exit": calls(TWICE, durability="exit"),
    "loops and remembers": LOOPS,
    "loops and remembers, async": replace(LOOPS, durability="async"),
    "loops and remembers, exit": replace(LOOPS, durability="exit"),
    "is steered to": around(TWO, Run(), Steer("s")),
    "is steered to and remembers": around(TWO, Run(), Steer("s"), keeps="thread"),
    "under exit": calls(around(INNER_ASK, Run(), Answer()), durability="exit"),
}

GROUPS = {
    "trace": TRACES,
    "resume": RESUMED,
    "question": QUESTIONS,
    "update": UPDATES,
    "travel": TRAVEL,
    "pause": PAUSES,
    "durability": DURABILITY,
    "shape": SHAPES,
    "subgraph": SUBGRAPHS,
}
CASES = {f"{group}: {name}": program for group, programs in GROUPS.items() for name, program in programs.items()}
