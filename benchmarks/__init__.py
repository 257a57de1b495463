"""The scripts that make the tables of the docs; `python -m benchmarks --help` lists them.

`tuning` and `ncu` look at one strategy while it is written, `presets` makes the reports, `markdown` makes tables of
stored points; the rest is what several scripts share.
"""
