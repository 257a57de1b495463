import pytest

from warpfold.app.reports.preset_sections import COMPARISONS
from warpfold.contract.kinds.preset import PresetSpec
from warpfold.contract.presets import catalogue
from warpfold.contract.presets.published import excerpt
from warpfold.kernels.errors import InvalidInput


@pytest.mark.parametrize("name", catalogue.names())
def test_every_file_is_a_preset_that_can_be_run_and_compared_with_its_document(name: str) -> None:
    preset = catalogue.preset_named(name)
    assert PresetSpec(kind="preset", preset=name).expand().children == preset.children
    assert excerpt(preset.document, preset.published)
    assert name in COMPARISONS


@pytest.mark.parametrize("name", catalogue.names())
def test_every_preset_has_something_that_a_cpu_can_do(name: str) -> None:
    children = PresetSpec(kind="preset", preset=name, backend="cpu", max_n=1000).expand().children
    assert children


def test_a_beginning_that_several_names_share_is_a_group() -> None:
    assert set(catalogue.groups()) == {"p05", "p05-task1", "p05-task3", "p34"}
    assert catalogue.groups()["p34"] == ("p34-advanced", "p34-coordination", "p34-reduction")
    assert [preset.name for preset in catalogue.members("p05-task1")] == [
        "p05-task1-correctness",
        "p05-task1-throughput",
    ]


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="p05-three-numbers"):
        catalogue.members("p06")


def test_jobs_of_a_group_carry_the_names_of_their_presets() -> None:
    names = [child.name for child in PresetSpec(kind="preset", preset="p34").expand().children]
    assert names == ["p34-advanced:advanced", "p34-coordination:coordination", "p34-reduction:reduction"]
