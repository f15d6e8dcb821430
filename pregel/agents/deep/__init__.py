"""Deep agents: files, subagents, summaries, skills and memory, on top of `create_agent`."""

from pregel.agents.deep.background import AsyncSubAgent, AsyncSubAgentMiddleware, AsyncTask
from pregel.agents.deep.create import DeepAgentState, create_deep_agent
from pregel.agents.deep.filesystem import FilesystemMiddleware, FsToolName
from pregel.agents.deep.memory import MemoryMiddleware
from pregel.agents.deep.permissions import FilesystemPermission
from pregel.agents.deep.rubric import GraderResponse, RubricEvaluation, RubricMiddleware
from pregel.agents.deep.skills import SkillMetadata, SkillsMiddleware
from pregel.agents.deep.subagents import CompiledSubAgent, SubAgent, SubAgentMiddleware
from pregel.agents.deep.summarization import SummarizationMiddleware

__all__ = [
    "AsyncSubAgent",
    "AsyncSubAgentMiddleware",
    "AsyncTask",
    "CompiledSubAgent",
    "DeepAgentState",
    "FilesystemMiddleware",
    "FilesystemPermission",
    "FsToolName",
    "GraderResponse",
    "MemoryMiddleware",
    "RubricEvaluation",
    "RubricMiddleware",
    "SkillMetadata",
    "SkillsMiddleware",
    "SubAgent",
    "SubAgentMiddleware",
    "SummarizationMiddleware",
    "create_deep_agent",
]
