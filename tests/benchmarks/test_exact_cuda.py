"""The tables of exact sums on a GPU, from stored figures."""

from dataclasses import asdict

from benchmarks.exact_cuda import Large, Small, shown


def large(**changes: object) -> dict[str, object]:
    row = Large(
        dtype="float32",
        data="normal",
        n=1 << 30,
        cub=4600.0,
        cub_gpu_to_gpu=3450.0,
        cupy_sum=4600.0,
        cupy_var=1150.0,
        exact_sum=4577.0,
        exact_sum_squares=4370.0,
        exact_moments=4140.0,
        exact_dot=4560.0,
    )
    return {**asdict(row), **changes}


def test_ratios_are_to_cub_the_read_ceiling_and_cupy() -> None:
    small = asdict(Small("float32", 1000, 5.4, 3.4, 3.1, 4.8))
    rows = [large(), large(data="all exponents", cub=None, cub_gpu_to_gpu=None, cupy_sum=None, cupy_var=None)]
    text = shown({"provenance": {"ceiling_gbps": 4650.0}, "large": rows, "small": [small]})
    lines = text.splitlines()
    assert lines[2] == "| float32 | normal | 4600 | 4577 | 0.995 | 0.95 | 0.90 | 0.98 | 1.33 | 0.99 | 3.60 | met |"
    assert lines[3] == "| float32 | all exponents | – | 4577 | – | – | – | 0.98 | – | – | – |  |"
    assert "| float32 | 1,000 | 5.40 | 3.40 | 3.10 | 4.80 |" in lines
    assert lines[-1] == "plain read 4650 GB/s"


def test_a_target_that_is_missed_says_so() -> None:
    rows = [large(exact_sum=4500.0), large(exact_sum=4200.0, data="all exponents")]
    text = shown({"provenance": {"ceiling_gbps": 4650.0}, "large": rows, "small": []})
    assert [line.split("|")[-2].strip() for line in text.splitlines()[2:4]] == ["missed", "met"]
