"""Folds: reductions that read an array piece by piece, in any order, and merge. The exact strategy is made of them."""
