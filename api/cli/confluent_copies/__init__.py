"""The parts of `annals import` and `annals export` that copy from and to other schema registries.

Not here: what a copy does (`projections/confluent_copy`), and the options (`api/cli/verbs`).
"""
