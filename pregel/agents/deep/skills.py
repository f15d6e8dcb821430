"""Skills: instructions in files, of which the model is told the names and reads the rest when it needs it.

A source is a directory of skills, each a directory with a ``SKILL.md`` that begins with its name and description. A
later source replaces skills of the same name. What cannot be read is told to the model, and the others still work. A
name that is not its directory's, in lowercase words, is logged as a warning: the skill is there under its name.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.frontmatter import FrontmatterError, frontmatter
from pregel.agents.flow import AgentFlow, either
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.requests import ModelRequest
from pregel.agents.middleware.todo import with_text
from pregel.agents.state import AgentState, OmitFromOutput, PrivateStateAttr
from pregel.errors import DefinitionError
from pregel.messages import HumanMessage

log = logging.getLogger("pregel.agents")

LARGEST = 10 * 1024 * 1024
LONGEST_DESCRIPTION, LONGEST_COMPATIBILITY, MOST_ERRORS = 1024, 500, 20
_PLACE = re.compile(r"\{skills(?:_list|_locations|_load_warnings)?\}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
PROMPT = """You have skills: instructions for kinds of work, in files. When one fits, read its file with `read_file`
before you begin, and follow it. Paths in it are below its directory.

{skills}"""


class SkillMetadata(TypedDict):
    """What is known of a skill before it is read."""

    name: str
    description: str
    path: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, str]
    allowed_tools: list[str]


def _with_pinned(left: list[str] | None, right: list[str] | None) -> list[str]:
    return [*(left or []), *(right or [])]


class SkillsState(AgentState):
    """The skills of a thread; `pinned_skills` are put before the model whole. With None as `skills_metadata` the skills
    are looked for again.
    """

    skills_metadata: NotRequired[Annotated[list[SkillMetadata] | None, OmitFromOutput]]
    skills_load_errors: NotRequired[Annotated[list[str], PrivateStateAttr]]
    pinned_skills: NotRequired[Annotated[list[str], OmitFromOutput, _with_pinned]]
    skills_pinned: NotRequired[Annotated[list[str], PrivateStateAttr, _with_pinned]]


class SkillsMiddleware(AgentMiddleware):
    """Tells the model of the skills in `sources`, directories of the backend, and puts pinned ones before it.

    `system_prompt` is the section with ``{skills}`` in it, or with ``{skills_locations}``, ``{skills_load_warnings}``
    and ``{skills_list}``; None tells the model nothing.
    """

    state_schema = SkillsState

    def __init__(
        self,
        *,
        backend: Backend,
        sources: Sequence[str | tuple[str, str]],
        system_prompt: str | None = PROMPT,
    ) -> None:
        if system_prompt is not None and not {"{skills}", "{skills_list}"} & set(_PLACE.findall(system_prompt)):
            raise DefinitionError("The section for skills has no place for them.", fix="Put {skills} into it.")
        if isinstance(sources, str):
            raise DefinitionError(f"The skills {sources!r} are no list.", fix=f"Put it in a list: [{sources!r}].")
        self.backend, self.system_prompt = backend, system_prompt
        self.sources = [source if isinstance(source, str) else source[0] for source in sources]

    @hook_config(can_jump_to=[])
    def before_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Find the skills, once a thread."""
        if state.get("skills_metadata") is not None:
            return None
        found: dict[str, SkillMetadata] = {}
        errors: list[str] = []
        for source in self.sources:
            listing = yield either(self.backend.ls, self.backend.als, source)
            if listing.error is not None:
                errors.append(f"{source}: {listing.error}")
            for entry in listing.entries if listing.error is None else ():
                if entry.get("is_dir"):
                    path = f"{entry['path']}SKILL.md"
                    skill = yield from self._skill(path, errors)
                    if skill is not None:
                        found[skill["name"]] = skill
        return {"skills_metadata": list(found.values()), "skills_load_errors": errors[:MOST_ERRORS]}

    @hook_config(can_jump_to=[])
    def before_model(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Put pinned skills before the model, each once."""
        shown = set(state.get("skills_pinned") or ())
        known = {skill["name"]: skill for skill in state.get("skills_metadata") or ()}
        names = [name for name in dict.fromkeys(state.get("pinned_skills") or ()) if name not in shown]
        messages = []
        for name in names:
            if name not in known:
                messages.append(HumanMessage(f"There is no skill {name!r}. The skills are: {', '.join(known)}."))
                continue
            skill, raw = known[name], (yield from self._raw(known[name]["path"]))
            pinned = {"name": name, "path": skill["path"], "description": skill["description"]}
            told = f"Follow the skill {name!r} ({skill['path']}):\n\n{raw}"
            marked = {"lc_source": "pinned_skill", "skill": pinned}
            messages.append(HumanMessage(told, additional_kwargs=marked))
        return {"messages": messages, "skills_pinned": names} if messages else None

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Tell the model which skills there are."""
        skills = request.state.get("skills_metadata") or ()
        errors = request.state.get("skills_load_errors") or ()
        if self.system_prompt is None or not (skills or errors):
            return (yield request)
        listed = "\n".join(map(_listed, skills))
        failed = "".join(f"\n(could not be read: {error})" for error in errors)
        parts = {
            "{skills}": (listed + failed).strip("\n"),
            "{skills_list}": listed,
            "{skills_load_warnings}": failed,
            "{skills_locations}": "\n".join(f"- {source}" for source in self.sources),
        }
        section = _PLACE.sub(lambda place: parts[place[0]], self.system_prompt)
        return (yield request.override(system_message=with_text(request.system_message, section)))

    def _raw(self, path: str) -> AgentFlow[str]:
        """The whole text of a file; FrontmatterError when it cannot be read."""
        (found,) = yield either(self.backend.download_files, self.backend.adownload_files, [path])
        if found.content is None or found.error is not None:
            raise FrontmatterError(str(found.error))
        if len(found.content) > LARGEST:
            raise FrontmatterError("it is larger than 10 MB")
        try:
            text: str = found.content.decode("utf-8")
        except UnicodeDecodeError:
            raise FrontmatterError("it is no text") from None
        return text.replace("\r\n", "\n") + "\n"

    def _skill(self, path: str, errors: list[str]) -> AgentFlow[SkillMetadata | None]:
        try:
            head = frontmatter((yield from self._raw(path)))
            return _metadata(path, head)
        except FrontmatterError as error:
            if not str(error).startswith("file_not_found"):  # a directory without a SKILL.md is no skill
                errors.append(f"{path}: {error}")
            return None


def _metadata(path: str, head: dict[str, Any]) -> SkillMetadata:
    name, description = (str(head.get(key) or "").strip() for key in ("name", "description"))
    if not name or not description:
        raise FrontmatterError("its head needs a name and a description")
    directory = path.split("/")[-2]
    if len(name) > 64 or not _NAME.fullmatch(name) or name != directory:
        log.warning("%s: the name %r should be its directory's, in lowercase words joined by hyphens.", path, name)
    more, tools = head.get("metadata"), head.get("allowed-tools") or []
    return {
        "name": name,
        "description": description[:LONGEST_DESCRIPTION],
        "path": path,
        "license": str(head["license"]) if head.get("license") else None,
        "compatibility": str(head["compatibility"])[:LONGEST_COMPATIBILITY] if head.get("compatibility") else None,
        "metadata": {str(key): str(value) for key, value in more.items()} if isinstance(more, dict) else {},
        "allowed_tools": tools if isinstance(tools, list) else re.split(r"[\s,]+", str(tools).strip()),
    }


def _listed(skill: SkillMetadata) -> str:
    notes = [
        f"{label}: {value}"
        for label, value in (
            ("license", skill.get("license")),
            ("needs", skill.get("compatibility")),
            ("tools", ", ".join(skill.get("allowed_tools") or ())),
        )
        if value
    ]
    told = f" ({'; '.join(notes)})" if notes else ""
    return f"- {skill['name']}: {skill['description']}{told} [{skill['path']}]"
