"""The slot `dask`: it cuts one reduction into partitions, which the workers of a Dask cluster reduce."""
