"""Ways to reduce on a GPU.

registry     all of them by name
strategy     what each can be asked, and the reducer that it starts
own          those written here: a .cu file of this folder each, read by `comment`, launched by `tuning`
exact        the correctly rounded one, by `exact_reducers`
cupy_        CuPy's; other peers are in `baselines`
reductions   which C++ reduction gives an op; `outcomes` makes its words the value of the op
"""
