"""Generated pairs of schemas near each other, and data that one of them writes: what we call readable is read.

`python -m bench.oracle --format JsonSchema --pairs 20000 --seed 1`; a subject for each format, a validator of another
project decides. Data has declared members only, at every depth (SC-36); what only undeclared members refuse is counted
apart.
"""
