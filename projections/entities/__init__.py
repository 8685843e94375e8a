"""The REST read model: one row for each living entity, one for each that was replaced, one for each scalar leaf."""
