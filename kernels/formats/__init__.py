"""Files as people have them: arrays in `arrays` (.npy, .npz, HDF5, NetCDF-4) and in `zarr_`, columns of tables in
`tables`. A format that needs a package imports it when a file is opened.

Messages of errors continue a sentence that begins with the file's name.
"""
