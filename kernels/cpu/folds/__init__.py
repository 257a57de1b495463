"""Reductions that read an array piece by piece, in any order, and merge: the exact strategy is made of them."""
