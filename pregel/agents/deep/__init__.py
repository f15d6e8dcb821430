"""Deep agents: files, subagents, summaries, skills and memory, on top of `create_agent`."""

from pregel.agents.deep.background import AsyncSubAgent, AsyncSubAgentMiddleware, AsyncTask
from pregel.agents.deep.compaction import SummarizationToolMiddleware, create_summarization_tool_middleware
from pregel.agents.deep.create import DeepAgentState, create_deep_agent
from pregel.agents.deep.filesystem import FilesystemMiddleware, FilesystemState, FsToolName
from pregel.agents.deep.memory import MemoryMiddleware, MemoryState
from pregel.agents.deep.permissions import FilesystemPermission
from pregel.agents.deep.rubric import (
    CriterionEval,
    GraderResponse,
    GraderVerdict,
    RubricEvaluation,
    RubricMiddleware,
    RubricResult,
    RubricState,
)
from pregel.agents.deep.skills import SkillMetadata, SkillsMiddleware, SkillsState
from pregel.agents.deep.subagents import (
    GENERAL_PURPOSE_SUBAGENT,
    CompiledSubAgent,
    SubAgent,
    SubAgentMiddleware,
    create_sub_agent,
)
from pregel.agents.deep.summarization import SummarizationMiddleware, create_summarization_middleware
from pregel.agents.deep.unsupported_content import UnsupportedContentMiddleware

__all__ = [
    "GENERAL_PURPOSE_SUBAGENT",
    "AsyncSubAgent",
    "AsyncSubAgentMiddleware",
    "AsyncTask",
    "CompiledSubAgent",
    "CriterionEval",
    "DeepAgentState",
    "FilesystemMiddleware",
    "FilesystemPermission",
    "FilesystemState",
    "FsToolName",
    "GraderResponse",
    "GraderVerdict",
    "MemoryMiddleware",
    "MemoryState",
    "RubricEvaluation",
    "RubricMiddleware",
    "RubricResult",
    "RubricState",
    "SkillMetadata",
    "SkillsMiddleware",
    "SkillsState",
    "SubAgent",
    "SubAgentMiddleware",
    "SummarizationMiddleware",
    "SummarizationToolMiddleware",
    "UnsupportedContentMiddleware",
    "create_deep_agent",
    "create_sub_agent",
    "create_summarization_middleware",
    "create_summarization_tool_middleware",
]
