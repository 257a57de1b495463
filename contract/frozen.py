"""The base of specs and results, which are stored and compared."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Cannot be changed, and knows all of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
