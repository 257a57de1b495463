from warpfold.contract.timings import bound_in_words


def test_the_stage_that_bounds_a_job_is_said_with_its_speed_where_that_says_something() -> None:
    stage = {"seconds": 2.0, "bytes": 1 << 30, "gb_per_s": 0.53687}
    assert bound_in_words({"stages": {"decode": stage}, "bound": "decode"}) == "bound by decode, 0.537 GB/s"
    assert bound_in_words({"stages": {"decode": {**stage, "bytes": 1000}}, "bound": "decode"}) == ""
    assert bound_in_words({"stages": {"reduce": stage}, "bound": None}) == ""
    assert bound_in_words({"total_ms": 3.0}) == "", "results of earlier versions have no stages"
