"""Decides commands about API keys and grants: at most one event each, in a stream outside the registry's tree."""
