"""What a thread tells of its start, for all who go on with it: few programs start runs elsewhere, and load the rest."""

STARTED_AS, STARTED_WITH = "start_fingerprint", "start_config"
"""What the checkpoints of a started run say of it in their metadata: its spec, and the config that it was given."""
BEGAN = "execution_began"
"""Where the checkpoints of an execution that continued another one say after which id of the thread theirs come."""
UNNAMED = "LangGraph"
"""The name of a graph without one, which cannot be started: a worker would not find it."""
