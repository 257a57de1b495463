"""Each kind of strategy as a subject of a benchmark: made ready once, then run on the same array again and again."""

from collections.abc import Callable
from typing import Any

from warpfold.kernels.bench.subject import Subject
from warpfold.kernels.cuda.baselines import Bound
from warpfold.kernels.cuda.exact import ExactAccumulator, ExactMoments, Kind, states_of_limbs
from warpfold.kernels.cuda.gpu.failures import cuda_errors
from warpfold.kernels.cuda.gpu.launch import Gpu
from warpfold.kernels.cuda.gpu.recorded import Prepared, RecordingGpu
from warpfold.kernels.cuda.strategies.cupy_ import cupy_calls
from warpfold.kernels.cuda.strategies.exact import exact_integers, spread
from warpfold.kernels.cuda.strategies.own import OwnStrategy
from warpfold.kernels.cuda.strategies.reducer import Method, OwnMethod
from warpfold.kernels.dtypes import DTYPES, DType
from warpfold.kernels.exact.finish import value_of
from warpfold.kernels.ops import Op, Terms, Value


class PreparedSubject:
    """Kernels of our own: their launches are recorded once, and a run starts them."""

    waits = False

    def __init__(self, method: Method, prepared: Prepared, array: Any) -> None:
        self._method, self._prepared, self._array = method, prepared, array
        self.read_bytes = int(array.nbytes)
        self.run: Callable[[], None] = prepared.start

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            return self._method.finish(self._array.size).value


def own_subject(gpu: Gpu, strategy: OwnStrategy, op: Op, dtype: DType, array: Any) -> PreparedSubject:
    """A strategy written here."""
    recorder = RecordingGpu(gpu)
    method = OwnMethod(recorder, strategy, op, dtype)
    return PreparedSubject(method, Prepared(gpu, _record(recorder, method, array)), array)


def exact_subject(gpu: Gpu, op: Op, dtype: DType, array: Any) -> Subject:
    """The exact strategy, for an op that adds something up."""
    if dtype.is_float:
        return ExactSubject(gpu, op, dtype, array)
    recorder = RecordingGpu(gpu)
    method = exact_integers(recorder, op, dtype)
    return PreparedSubject(method, Prepared(gpu, _record(recorder, method, array)), array)


def _record(recorder: RecordingGpu, method: Method, array: Any) -> list[Any]:
    with recorder.recording() as calls:
        method.add(array, 0)
    return calls


class CupySubject:
    """CuPy, called as its users call it: the result is a new array on the device."""

    waits = False

    def __init__(self, op: Op, array: Any) -> None:
        self._call, self._array = cupy_calls()[op.name], array
        self._result: Any = None
        self.read_bytes = int(array.nbytes)

    def run(self) -> None:
        self._result = self._call(self._array)

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            value: Value = self._result.item()
            return value


class BaselineSubject:
    """A peer."""

    def __init__(self, bound: Bound, array: Any) -> None:
        self._bound = bound
        self.waits = bound.waits
        self.read_bytes = int(array.nbytes)
        self.run: Callable[[], None] = bound.run

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            return self._bound.value()


class ExactSubject:
    """The exact accumulator: its one launch, recorded.

    Each run adds the array to the same total, which is never cleared: limbs are sums modulo 2^64, so that what one run
    adds is their difference, exactly.
    """

    waits = False

    def __init__(self, gpu: Gpu, op: Op, dtype: DType, array: Any) -> None:
        self._op, self._dtype = op, dtype
        recorder = RecordingGpu(gpu)
        self._sum: ExactAccumulator | ExactMoments
        if op.terms is Terms.MOMENTS:
            self._sum = ExactMoments(recorder, dtype)
        else:
            self._sum = ExactAccumulator(recorder, dtype, op.terms, magnitudes=op.magnitudes)
        with recorder.recording() as calls:
            self._sum.add(array)
        self._prepared = Prepared(gpu, calls)
        self.read_bytes = int(array.nbytes)
        self.run: Callable[[], None] = self._prepared.start

    def value(self) -> Value:
        with cuda_errors("reading the value"):
            before = self._sum.limbs.get()
            self.run()
            states = states_of_limbs(self._sum.kind, self._sum.limbs.get() - before)
        result = self._op.result_dtype(self._dtype)
        if self._sum.kind is Kind.MOMENTS:
            return spread(self._op, (states[0], states[1]), 0, DTYPES[result]).value
        return value_of(self._op, states[0], result)
