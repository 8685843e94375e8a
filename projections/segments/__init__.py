"""The log as immutable Parquet files, for readers in bulk: any filesystem, whole interactions, a manifest beside them.

`docs/segments.md` says how they lie there. Needs pyarrow, which the extra `annals[segments]` brings.
"""
