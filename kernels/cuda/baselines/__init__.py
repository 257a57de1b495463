"""The peers that Warpfold is measured against. All of them are optional: the catalogue and the results say why a peer
is missing. `rows` has what the catalogue says of them.
"""
