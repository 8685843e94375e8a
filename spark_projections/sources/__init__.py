"""Where the log comes from: each source gives rows of `schema.LOG_SCHEMA`, whole interactions up to one position."""
