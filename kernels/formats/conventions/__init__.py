"""Attributes by which an array says what its elements mean: the CF conventions (sections 2.5.1 and 8.1), the attribute
conventions of the NetCDF User Guide, and the fill values of netCDF-4. HDF5, netCDF-4 and Zarr share them."""

from warpfold.kernels.formats.conventions.lowering import Lowering, lowered
from warpfold.kernels.formats.conventions.objects import check_means_itself, lowering_of_hdf5, lowering_of_zarr
from warpfold.kernels.formats.conventions.rules import Conventions

__all__ = ["Conventions", "Lowering", "check_means_itself", "lowered", "lowering_of_hdf5", "lowering_of_zarr"]
