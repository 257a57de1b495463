"""What a job is asked to do, in one line."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_NAMES = 3
_MOST_FACTS = 4
_OPTIONS = frozenset({"kind", "timeout_s", "priority", "tags", "backend", "seed"})


def summary_of(kind: str, spec: Mapping[str, Any]) -> str:
    """One line about `spec`, the JSON object of a stored spec or of its brief form; any version's will do."""
    return " · ".join(part for part in _parts(kind, spec) if part) or kind


def _parts(kind: str, spec: Mapping[str, Any]) -> Sequence[str]:  # noqa: PLR0911 - one a kind
    match kind:
        case "reduce":
            return (
                f"{spec.get('op')} of {source_of(spec.get('source'))}",
                source_of(spec["other"]) if spec.get("other") else "",
            )
        case "benchmark" | "profile":
            return *_names(spec, "ops", "dtypes"), _span(spec.get("sizes")), *_names(spec, "strategies")
        case "accuracy":
            names = _names(spec, "ops", "dtypes", "distributions")
            return *names, _span(spec.get("sizes")), *_names(spec, "methods")
        case "three_numbers":
            return " + ".join(_short(spec.get(name)) for name in "abc") + " in every order", str(spec.get("dtype"))
        case "scaling":
            told = (("sizes", "elements"), ("sizes_per_rank", "elements a rank"), ("messages", "bytes"))
            spans = (f"{_span(spec[name])} {what}" for name, what in told if spec.get(name))
            return *spans, f"ranks {_short(spec.get('ranks'))}"
        case "cluster":
            threads, blocks = spec.get("threads"), spec.get("cluster_size")
            return f"{spec.get('puzzle')} of {spec.get('size')} elements", f"{blocks} blocks of {threads} threads"
        case "preset":
            limits = (f"{_words(name)} {_short(spec[name])}" for name in ("backend", "max_n") if spec.get(name))
            return str(spec.get("preset")), *limits
    facts = (f"{_words(name)} {_short(value)}" for name, value in spec.items() if name not in _OPTIONS and value)
    return list(facts)[:_MOST_FACTS]


def source_of(source: Mapping[str, Any] | None) -> str:
    """Where a job's elements come from."""
    match source:
        case {"type": "values", "dtype": dtype, "count": int(count)}:
            return f"{count:,} values as {dtype}"
        case {"type": "values", "dtype": dtype, "values": [*values]}:
            return f"{len(values):,} value{'' if len(values) == 1 else 's'} as {dtype}"
        case {"type": "generate", "n": int(n), "distribution": distribution, "dtype": dtype}:
            return f"{_size(n)} {distribution} {dtype}"
        case {"type": "path", "path": path}:
            return f"file {path}"
        case {"type": kind, **rest}:
            return f"{kind} {' '.join(str(value) for value in rest.values())}"
    return "nothing"


def _span(sizes: Sequence[int] | None) -> str:
    sizes = sizes or ()
    return f"{_size(min(sizes))}–{_size(max(sizes))}" if len(sizes) > 1 else "".join(map(_size, sizes))


def _size(n: int) -> str:
    """10000000 → "10⁷", 1073741824 → "2³⁰", 1500 → "1,500"."""
    if n >= 1024 and n & (n - 1) == 0:
        return f"2{_raised(n.bit_length() - 1)}"
    digits = str(n)
    if n >= 1000 and set(digits[1:]) == {"0"}:
        factor = "" if digits[0] == "1" else f"{digits[0]}·"
        return f"{factor}10{_raised(len(digits) - 1)}"
    return f"{n:,}"


def _raised(exponent: int) -> str:
    return str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _names(spec: Mapping[str, Any], *fields: str) -> Sequence[str]:
    return [_some(spec.get(field)) for field in fields]


def _some(names: Sequence[str] | None) -> str:
    names = names or ()
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _short(value: object) -> str:
    if isinstance(value, str | bool):
        return str(value)[:40]
    if isinstance(value, int):
        return _size(value)
    if isinstance(value, float):
        return f"{value:g}".replace("e+0", "e")  # 1e8, not 100000000.0
    if isinstance(value, list) and all(isinstance(one, str | int) for one in value):
        return _some([_short(one) for one in value])
    return json.dumps(value)[:40]


def _words(name: str) -> str:
    return name.replace("_", " ")
