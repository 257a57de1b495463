"""The base of everything that a spec is made of."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Cannot be changed, and knows all of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
