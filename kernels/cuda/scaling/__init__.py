"""Ranks on GPUs: one a GPU, with NCCL between them."""
