"""The base of specs and results, which are stored and compared."""

from pydantic import BaseModel, ConfigDict

SHOW_SECRETS = "show secrets"
"""The context of a dump that is to be sent to the service: any other leaves the secret of a webhook out."""


class Frozen(BaseModel):
    """Cannot be changed, and knows all of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
