"""The verbs of the console command; `annals spark` is in tests/spark_projections/."""
