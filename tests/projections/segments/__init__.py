"""The log as Parquet files, in local folders and over S3."""
