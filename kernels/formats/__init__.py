"""Files as people have them: arrays by `arrays` (.npy, .npz, HDF5, NetCDF-4), columns of tables by `tables` (Parquet,
Arrow, text), Zarr by `zarr_`. A format that needs a package imports it when a file is opened. The message of an error
continues a sentence that begins with the file's name.
"""
