"""The errors of the engine."""


class EngineError(Exception):
    """The root of the engine's errors."""


class InputFull(EngineError):
    """The input queue has no room; the task was not taken."""


class EngineStopped(EngineError):
    """The engine takes no more tasks."""


class UnknownTask(EngineError, KeyError):
    """The task was never submitted, or its result was handed out or dropped."""


class ResultTimeout(EngineError, TimeoutError):
    """The task has no result yet."""
