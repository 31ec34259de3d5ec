"""The closed exception tree of Scalify.

A user's mistake raises an :class:`InputError`: one line that names the file and the line, instruction or key,
and says what to do. A verdict is a value, never an exception.

    ScalifyError
    |-- InputError            exit status 2
    |   |-- UsageError        the command line or an API call
    |   |-- HloError          a graph file: unreadable, malformed, inconsistent
    |   |   |-- OverBudget    execution needs more memory or time than is allowed
    |   |   `-- Undecidable   a value that the chosen arithmetic cannot compute
    |   |-- RelationError     a relation file, or a relation that contradicts the graphs
    |   `-- ConfigError       rules, custom-call registries and other settings from files
    `-- InternalError         exit status 4
"""

from __future__ import annotations


class ScalifyError(Exception):
    """Base of every error that Scalify raises on purpose."""

    exit_status = 4


class InputError(ScalifyError):
    """The input cannot be used as it is. ``where`` names file, line, instruction or key."""

    exit_status = 2

    def __init__(self, message: str, where: str | None = None) -> None:
        self.message = message
        self.where = where
        super().__init__(f"{where}: {message}" if where else message)

    def at(self, where: str) -> InputError:
        """The same error with an outer place put before the inner one (``file: instruction: message``)."""
        return type(self)(self.message, f"{where}: {self.where}" if self.where else where)


class UsageError(InputError):
    """Wrong command line or wrong call."""


class HloError(InputError):
    """A graph file that cannot be read, or whose shapes, operands or attributes contradict each other."""


class OverBudget(HloError):
    """Execution would need more elements, operations or digits than the budget allows; raised before they are allocated."""


class Undecidable(HloError):
    """A value that the chosen arithmetic cannot compute, or that the graph alone does not determine."""


class RelationError(InputError):
    """A relation file that is malformed, incomplete, or contradicts the graphs."""


class ConfigError(InputError):
    """A rule file, custom-call registry or other settings file that cannot be used."""


class InternalError(ScalifyError):
    """A defect of Scalify or of its surroundings, not of the input."""
