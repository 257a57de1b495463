"""Ranks on GPUs: one a GPU, whose sums travel by stores or by NCCL."""
