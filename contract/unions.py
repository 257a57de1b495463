"""Errors of fields that may have one of several types."""

from collections.abc import Callable
from typing import Any

from pydantic import GetPydanticSchema
from pydantic_core import core_schema


def said_as(message: str) -> GetPydanticSchema:
    """One sentence in place of an error for each member of a union."""

    def with_sentence(source: Any, handler: Callable[[Any], core_schema.CoreSchema]) -> core_schema.CoreSchema:
        return core_schema.custom_error_schema(handler(source), custom_error_type="union", custom_error_message=message)

    return GetPydanticSchema(with_sentence)
