"""Rates of slots as tests announce them."""

from warpfold.contract.placement import RatesView

CPU = RatesView(read_gb_per_s=51.7, copy_gb_per_s=None, reduce_gb_per_s=50, generate_gb_per_s=5, overhead_s=0.0002)
H200 = RatesView(read_gb_per_s=38, copy_gb_per_s=55, reduce_gb_per_s=4600, generate_gb_per_s=1400, overhead_s=0.0005)
"""As an H200 and the 16 cores beside it have them."""
