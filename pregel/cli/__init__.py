"""The `pregel` command: runs graphs on threads that last, shows what they recorded, and plays the demos.

Exit codes: 0 the run ended, 1 it failed, 2 the call was wrong and nothing ran, 3 the run waits for an answer, 75 the
thread is busy and nothing ran.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from importlib import import_module

from pregel.cli.screen import PlainScreen, Screen, open_screen
from pregel.cli.usage import BUSY, WRONG, CallError
from pregel.errors import DefinitionError, ThreadBusy, UsageError
from pregel.version import __version__

__all__ = ["main"]

Command = Callable[[argparse.Namespace, Screen], int]
AS_WRITTEN = argparse.RawDescriptionHelpFormatter
EXIT_CODES = """exit codes:
  0  the run ended, or the question was answered
  1  the run failed; what it recorded before is kept
  2  the call is wrong: nothing ran and nothing was written
  3  the run is paused: it waits for `pregel resume`
 75  somebody else runs the thread: nothing ran, try again later
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the arguments say (default: those of the process) and returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a value that the terminal cannot show is no failure
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said what is wrong, or has shown its help
        return int(stop.code or 0)
    scripted = getattr(options, "json", False) or getattr(options, "format", "") == "json"
    screen = PlainScreen(sys.stdout) if scripted else open_screen()
    try:
        with redirect_stdout(sys.stderr) if scripted else nullcontext():  # what the user's code prints is no JSON
            return _command(options.command)(options, screen)
    except (CallError, DefinitionError, UsageError) as error:
        screen.problem(str(error))
        return WRONG
    except ThreadBusy as error:
        screen.problem(str(error))
        return BUSY
    except KeyboardInterrupt:
        screen.problem("Stopped by Ctrl-C. What was recorded is kept: `pregel resume` goes on from there.")
        return 130
    except BrokenPipeError:  # the reader of our output, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _command(path: str) -> Command:
    module, _, name = path.partition(":")
    command: Command = getattr(import_module(module), name)  # on use: `pregel --help` loads no engine
    return command


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pregel",
        description="Run graphs on threads that survive their process, and look at what they recorded.",
        epilog=EXIT_CODES,
        formatter_class=AS_WRITTEN,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_resume(commands)
    _add_repair(commands)
    _add_chat(commands)
    _add_reads(commands)
    _add_follow(commands)
    _add_workers(commands)
    _add_upkeep(commands)
    _add_draw(commands)
    _add_lint(commands)
    _add_guide(commands)
    _add_demo(commands)
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser(
        "run", help="run a graph on a thread, with an input", epilog=EXIT_CODES, formatter_class=AS_WRITTEN
    )
    _graph(run)
    run.add_argument("--input", required=True, metavar="JSON", help="the input: JSON text, @FILE, or - for stdin")
    _thread(run)
    _journals(run)
    run.set_defaults(command="pregel.cli.runs:run")


def _add_resume(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    resume = commands.add_parser(
        "resume", help="go on with a thread, or answer it", epilog=EXIT_CODES, formatter_class=AS_WRITTEN
    )
    _graph(resume)
    resume.add_argument(
        "--answer",
        metavar="JSON",
        help="the answer to the pending question, or {question id: answer, ...}; JSON text, @FILE, or - for stdin",
    )
    _thread(resume)
    _journals(resume)
    resume.set_defaults(command="pregel.cli.runs:resume")


def _add_repair(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rewind = commands.add_parser(
        "rewind",
        help="make a thread that failed ready to go on where it failed",
        description="Nothing runs: `pregel resume` goes on with it. The failure, the reason and who rewound it are "
        "kept in the history. What was done outside is not undone; what may have been done is named.",
        epilog=EXIT_CODES,
        formatter_class=AS_WRITTEN,
    )
    _graph(rewind)
    rewind.add_argument("--reason", required=True, metavar="TEXT", help="what was repaired")
    rewind.add_argument("--operator", metavar="NAME", help="who rewinds it (default: the user of this process)")
    _thread(rewind)
    rewind.set_defaults(command="pregel.cli.rewind:rewind")
    settle = commands.add_parser(
        "settle",
        help="list what a thread may have done outside, or say what came of it",
        description="Without --effect it lists what was begun and has no outcome. `pregel resume` goes on.",
        epilog=EXIT_CODES,
        formatter_class=AS_WRITTEN,
    )
    _graph(settle)
    settle.add_argument("--effect", metavar="KEY", help="the effect's key, or its id")
    outcome = settle.add_mutually_exclusive_group()
    outcome.add_argument("--result", metavar="JSON", help="it happened: what its node is given")
    outcome.add_argument("--retry", action="store_true", help="it did not happen: its node does it anew")
    settle.add_argument("--operator", metavar="NAME", help="who says so (default: the user of this process)")
    _thread(settle)
    settle.set_defaults(command="pregel.cli.settle:settle")


def _add_chat(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk to an agent, or to a model",
        description="What you type is a message, or the answer to a question. An empty line goes on with a run that "
        "was stopped or failed. Ctrl-D ends the conversation; its thread is kept.",
        epilog=EXIT_CODES,
        formatter_class=AS_WRITTEN,
    )
    chat.add_argument("graph", nargs="?", metavar="MODULE:AGENT", help="an agent, e.g. shop.helper:agent")
    chat.add_argument("--model", metavar="PROVIDER:NAME", help="in place of an agent: a model without tools")
    chat.add_argument("--system", metavar="TEXT", help="the system prompt of --model")
    chat.add_argument("--thread", metavar="ID", help="the thread to go on with (default: a new one)")
    chat.add_argument("--db", default="pregel.db", metavar="FILE", help="the SQLite file (default: %(default)s)")
    chat.set_defaults(command="pregel.cli.chat:chat")


def _add_reads(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    threads = commands.add_parser("threads", help="list the threads of a database")
    _database(threads)
    threads.set_defaults(command="pregel.cli.threads:threads")
    history = commands.add_parser("history", help="list the checkpoints of a thread, newest first")
    history.add_argument("--limit", type=int, metavar="N", help="the newest N only")
    show = commands.add_parser("show", help="show what a thread holds, and what it waits for")
    show.add_argument("--checkpoint", metavar="ID", help="an earlier checkpoint in place of the newest")
    for name, reader in (("history", history), ("show", show)):
        _thread(reader)
        help_text = "the graph of the thread: adds what runs next, and reads its own types"
        reader.add_argument("--graph", metavar="MODULE:GRAPH", help=help_text)
        reader.set_defaults(command=f"pregel.cli.history:{name}")


def _add_follow(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    follow = commands.add_parser(
        "follow",
        help="show what a thread's runs journaled, and go on with them",
        description="Shows what runs with a journaled stream (pregel run --journal-stream) have shown and go on to "
        "show, until the thread comes to rest. It only reads, and may run anywhere, any number of times.",
        epilog=EXIT_CODES,
        formatter_class=AS_WRITTEN,
    )
    _thread(follow)
    follow.add_argument("--offset", type=int, default=0, metavar="N", help="begin with this chunk (default: the first)")
    follow.add_argument("--wait", type=float, metavar="SECONDS", help="give up when nothing was new for so long")
    follow.add_argument("--graph", metavar="MODULE:GRAPH", help="a graph whose own types the chunks hold")
    follow.set_defaults(command="pregel.cli.follow:follow")


def _journals(parser: argparse.ArgumentParser) -> None:
    help_text = "journal what the run shows, for `pregel follow`"
    parser.add_argument("--journal-stream", action="store_true", help=help_text)


def _add_workers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    start = commands.add_parser(
        "start",
        help="admit a run, and leave it to a worker",
        description="Returns once the run is stored; nothing of it runs here. The graph needs a name.",
        epilog=EXIT_CODES,
        formatter_class=AS_WRITTEN,
    )
    _graph(start)
    start.add_argument("--input", required=True, metavar="JSON", help="the input: JSON text, @FILE, or - for stdin")
    start.add_argument("--key", metavar="KEY", help="the idempotency key: of several starts with it one counts")
    start.add_argument("--thread", metavar="ID", help="the thread (default: a new one; with --key: of that id)")
    _database(start)
    start.set_defaults(command="pregel.cli.worker:start")
    worker = commands.add_parser(
        "worker",
        help="run what was started, and what other processes left when they died",
        description="Runs until SIGTERM or Ctrl-C, and leaves what is not done to others. The graphs need names.",
    )
    worker.add_argument("graphs", nargs="+", metavar="MODULE:GRAPH", help="the graphs whose threads it runs")
    worker.add_argument("--concurrency", type=int, default=8, metavar="N", help="runs at once (default: %(default)s)")
    worker.add_argument("--once", action="store_true", help="run what can go on now, and end")
    worker.add_argument("--http", type=int, metavar="PORT", help="serve GET /threads/ID on this port of localhost")
    _database(worker)
    worker.set_defaults(command="pregel.cli.worker:work")


def _add_upkeep(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    prune = commands.add_parser("prune", help="remove what threads no longer need: their history, or all of them")
    which = prune.add_mutually_exclusive_group(required=True)
    which.add_argument("--thread", metavar="ID", nargs="+", help="these threads")
    which.add_argument("--idle-for", metavar="TIME", help="the threads not written for so long: 90s, 30m, 12h, 7d")
    prune.add_argument("--delete", action="store_true", help="remove the whole thread; else its newest state stays")
    delete = commands.add_parser("delete", help="erase threads with everything about them")
    delete.add_argument("--thread", metavar="ID", nargs="+", required=True, help="these threads")
    _database(delete)
    delete.set_defaults(command="pregel.cli.threads:delete")
    verify = commands.add_parser("verify", help="read every record of threads, and say what is damaged")
    verify.add_argument("--thread", metavar="ID", nargs="+", help="these threads (default: all)")
    verify.add_argument("--graph", metavar="MODULE:GRAPH", help="a graph whose own types the threads hold")
    for name, parser in (("prune", prune), ("verify", verify)):
        _database(parser)
        parser.set_defaults(command=f"pregel.cli.upkeep:{name}")


def _add_draw(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    draw = commands.add_parser("draw", help="draw a graph, and how far a thread has come in it")
    _graph(draw)
    draw.add_argument("-o", "--output", metavar="FILE", help=".svg, .png, .mmd (Mermaid) or .txt (default: text)")
    draw.add_argument("--xray", action="store_true", help="show what is inside of subgraphs")
    draw.add_argument("--thread", metavar="ID", help="mark what is done, running, waiting or failed on this thread")
    _database(draw)
    draw.set_defaults(command="pregel.cli.draw:draw")


def _add_lint(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lint = commands.add_parser(
        "lint",
        help="check durable code for what goes wrong when it runs again",
        description="Reads source and runs nothing of it. Exit codes: 0 nothing was found, 1 something was, 2 the call "
        "is wrong. docs/lint.md has the rules; `# pregel: ignore[RULE]` switches one off for a line.",
    )
    lint.add_argument("targets", nargs="+", metavar="FILE|DIRECTORY|MODULE[:GRAPH]", help="what to check")
    lint.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: %(default)s)")
    lint.set_defaults(command="pregel.cli.lint:lint")


def _add_guide(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    guide = commands.add_parser("guide", help="read the documents, offline: a list of the pages, or a page")
    guide.add_argument("page", nargs="?", metavar="PAGE", help="the page, e.g. waits (default: which pages there are)")
    guide.add_argument("--path", action="store_true", help="print the directory of the pages instead")
    guide.set_defaults(command="pregel.cli.guide:guide")
    check = commands.add_parser(
        "check",
        help="check a workflow before it is used: lint it, build it, compile it",
        description="Builds and compiles it in a process of its own, and runs none of its nodes. Exit codes: 0 nothing "
        "was found, 1 something was, 2 the call is wrong.",
    )
    check.add_argument(
        "target", metavar="FILE|MODULE[:GRAPH]", help="what to check, e.g. flow.py or shop.refunds:graph"
    )
    check.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="(default: %(default)g)")
    check.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: %(default)s)")
    check.set_defaults(command="pregel.cli.guide:check")


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="see a run killed and continued",
        description="Books a trip in a process that is killed with SIGKILL, and lets the next process go on. "
        "`pregel demo agent` does it with an agent, `pregel demo review FILE FILE` reviews two Python files of yours.",
    )
    demo.add_argument("--keep", action="store_true", help="keep the database and say where it is")
    demo.set_defaults(command="pregel.cli.demo.trip_story:tell")
    stories = demo.add_subparsers(metavar="agent | review FILE FILE")
    agent = stories.add_parser("agent", help="an agent with a scripted model, offline")
    agent.add_argument("--keep", action="store_true", default=argparse.SUPPRESS, help="keep the database")
    agent.set_defaults(command="pregel.cli.demo.agent_story:tell")
    review = stories.add_parser("review", help="review two Python files")
    review.add_argument("files", nargs=2, metavar="FILE")
    review.add_argument("--keep", action="store_true", default=argparse.SUPPRESS, help="keep the database")
    review.set_defaults(command="pregel.cli.demo.review_story:tell")


def _graph(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="MODULE:GRAPH", help="a graph, compiled or not, e.g. shop.refunds:graph")


def _thread(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--thread", required=True, metavar="ID", help="the thread")
    _database(parser)


def _database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", default="pregel.db", metavar="FILE", help="the SQLite file (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
