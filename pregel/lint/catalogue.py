"""Which calls of which libraries matter: by the dotted name that a module's imports give them."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

CLOCK, RANDOM, SLEEP, FILE, READ, WRITE, DATABASE, TOOL = (
    "clock",
    "random",
    "sleep",
    "file",
    "read",
    "write",
    "database",
    "tool",
)
QUESTION, CALL, STEP, GRAPH = "question", "call", "step", "graph"


class Kind(NamedTuple):
    """What a call is, and whether it is a write that a provider must be able to tell from its repetition."""

    kind: str
    needs_key: bool = False


_CLOCKS = {
    *(f"time.{name}" for name in ("time", "time_ns", "localtime", "gmtime", "ctime", "asctime")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
}
_DRAWS = re.compile(
    r"random\.(random|randint|randrange|uniform|choice|choices|sample|shuffle|gauss|normalvariate|betavariate|"
    r"expovariate|triangular|getrandbits|randbytes)|uuid\.uuid[14]|secrets\.\w+|os\.urandom|"
    r"numpy\.random\.(rand|randn|randint|random|choice|shuffle|permutation|normal|uniform)"
)
_GENERATORS = {"random.Random", "numpy.random.default_rng"}  # seeded by their argument
_SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "trio.sleep"}
_FILES = re.compile(
    r"open|io\.open|input|os\.(listdir|scandir|remove|unlink|rename|mkdir|makedirs|rmdir|walk|stat)|"
    r"os\.path\.(exists|isfile|isdir|getsize|getmtime)|shutil\.\w+|tempfile\.\w+|pathlib\.Path\.(open|read_text|read_bytes|"
    r"write_text|write_bytes|unlink|mkdir|touch|iterdir|glob|rglob|exists|stat)|glob\.(glob|iglob)|os\.(getenv|environ\.get)"
)
_FILE_METHODS = {"read_text", "read_bytes", "write_text", "write_bytes"}
_HTTP = re.compile(
    r"(requests|httpx|aiohttp|niquests)\.((Session|Client|AsyncClient|ClientSession|session)\.)?"
    r"(?P<verb>get|head|options|post|put|patch|delete|request|stream)"
)
_SENDS = re.compile(
    r"smtplib\.SMTP(_SSL)?\.(sendmail|send_message)|stripe\.(\w+\.)*create|subprocess\.(run|call|check_call|check_output|"
    r"Popen)|os\.system"
)
_READS = re.compile(r"urllib\.request\.(urlopen|urlretrieve)|socket\.create_connection")
_DATABASES = re.compile(
    r"(sqlite3|aiosqlite|psycopg|psycopg2|asyncpg|pymysql|MySQLdb|mysql\.connector|duckdb)\.\w+(\.\w+)*\."
    r"(execute|executemany|executescript|fetch|fetchrow|fetchval)"
)
_SQL = re.compile(r"\s*(?P<verb>select|with|insert|update|delete|replace|merge|create|drop|alter|truncate)\b", re.I)
_UNREPEATABLE = re.compile(r"\s*insert\b(?!\s+or\s+(ignore|replace))(?!.*\bon\s+(conflict|duplicate))", re.I | re.S)
_MODELS = re.compile(
    r"(chat\.completions|responses|messages|completions)\.create|(beta\.)?chat\.completions\.parse|embeddings\.create"
)
_MODEL_MAKERS = re.compile(
    r"(\w+\.)*(init_chat_model|Chat[A-Z]\w*|Fake\w*ChatModel)(\.(bind_tools|with_structured_output|bind))*"
)
_TOOL_NAMES = re.compile(r"(\w+_)?tool|tools|tools_by_name|TOOLS")
_INVOKES = {"invoke", "ainvoke", "run", "arun"}


def kind_of(name: str, call: ast.Call) -> Kind | None:
    """What a call by this dotted name is; None for all that does not matter."""
    if name in _CLOCKS:
        return None if name in ("time.localtime", "time.gmtime", "time.ctime") and call.args else Kind(CLOCK)
    if _DRAWS.fullmatch(name) or (name in _GENERATORS and not (call.args or call.keywords)):
        return Kind(RANDOM)
    if name in _SLEEPS:
        return None if _is_zero(call) else Kind(SLEEP)
    if _FILES.fullmatch(name) or name.rpartition(".")[2] in _FILE_METHODS:
        return Kind(FILE)
    if (http := _HTTP.fullmatch(name)) is not None:
        return _http(http["verb"], call)
    if _SENDS.fullmatch(name):
        return Kind(WRITE, needs_key=not name.startswith(("subprocess", "os.")))
    if _READS.fullmatch(name):
        return Kind(READ)
    return _database(name, call) or _agent(name)


def _http(verb: str, call: ast.Call) -> Kind:
    if verb in ("request", "stream") and call.args and isinstance(call.args[0], ast.Constant):
        verb = str(call.args[0].value).lower()
    if verb in ("get", "head", "options", "stream"):
        return Kind(READ)
    return Kind(WRITE, needs_key=verb in ("post", "patch"))


def _database(name: str, call: ast.Call) -> Kind | None:
    sql = _text(call.args[0]) if call.args else ""
    verb = _SQL.match(sql)
    method = name.rpartition(".")[2]
    if not (_DATABASES.fullmatch(name) or (verb and method in ("execute", "executemany"))):
        return None
    if verb is None or verb["verb"].lower() in ("select", "with"):
        return Kind(READ)
    return Kind(DATABASE, needs_key=_UNREPEATABLE.match(sql) is not None)


def _agent(name: str) -> Kind | None:
    if _MODELS.search(name) and "." in name:
        return Kind(TOOL)
    receiver, _, method = name.rpartition(".")
    if method in _INVOKES and (_MODEL_MAKERS.fullmatch(receiver) or _TOOL_NAMES.fullmatch(receiver.lstrip("?"))):
        return Kind(TOOL)
    return None


def _is_zero(call: ast.Call) -> bool:
    """A sleep of 0 only lets others run."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def _text(node: ast.expr) -> str:
    """The text of a literal, as far as it is one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in node.values)
    return ""
