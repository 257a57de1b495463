"""The strategies on a GPU.

registry         lists all of them by name
strategy         says what each strategy can do, and what the reducer that it starts can do
own              holds those written here: each is a .cu file of this folder, whose leading comment `comment` reads
exact            is the correctly rounded one, by `exact_reducers`
cupy_            is CuPy's; other peers are in `baselines`
partial_results  makes the words that kernels leave the value of an op
workloads        makes a strategy's launches the workload of a benchmark
"""
