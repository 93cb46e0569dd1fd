"""Greets a person.

For the tests of jobs.
"""

from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.engine.execution_context import ExecutionContext


class GreetParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field("Ayşe", min_length=1, max_length=20, description="Whom to greet.")
    times: int = Field(1, ge=1, le=5, description="How often.")
    day: date | None = Field(None, description="On which day.")
    polite: bool = True
    language: Literal["tr", "en"] = "tr"
    tags: list[str] = []


MAX_RETRIES = 0


def run(params: GreetParams, context: ExecutionContext) -> dict[str, Any]:
    for number in range(params.times):
        context.progress(number + 1, params.times, f"Merhaba {params.name}")
        print(f"Merhaba {params.name}")
    context.artifact("greeting.txt").write_text(f"Merhaba {params.name}\n" * params.times)
    return {"greeted": params.name, "times": params.times, "day": params.day.isoformat() if params.day else None}
