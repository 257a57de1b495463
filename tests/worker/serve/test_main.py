import pytest

from warpfold.worker.serve.__main__ import default_slots, parse_slots


def test_slots_are_read_in_the_order_given() -> None:
    assert parse_slots("cuda:0, cpu") == ("cuda:0", "cpu")


@pytest.mark.parametrize("text", ["", " , ", "gpu", "cuda", "cuda:x", "cpu,cpu", "cuda:-1"])
def test_what_is_not_a_slot_is_refused_with_its_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"slot|twice"):
        parse_slots(text)


def test_the_cpu_is_always_a_slot() -> None:
    assert default_slots()[-1] == "cpu"


@pytest.mark.parametrize(
    ("gpus", "slots"),
    [
        (0, ("cpu",)),
        (1, ("cuda:0", "cpu")),
        (2, ("cuda:0", "cuda:1", "gang", "cpu")),
    ],
)
def test_several_gpus_have_a_gang(monkeypatch: pytest.MonkeyPatch, gpus: int, slots: tuple[str, ...]) -> None:
    monkeypatch.setattr("warpfold.worker.serve.__main__.gpu_count", lambda: gpus)
    assert default_slots() == slots
    assert parse_slots(",".join(slots)) == slots
