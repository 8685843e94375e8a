"""Who calls: fixed tokens and JWTs."""
