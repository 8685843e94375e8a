"""The log as immutable Parquet files for bulk readers, on any filesystem, with whole interactions and a manifest.

`docs/guides/segments.md` specifies their layout. Needs pyarrow, from the extra `annals[segments]`.
Begin with `write.py` and `folder.py`.
"""
