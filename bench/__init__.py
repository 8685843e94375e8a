"""Figures of the product, each beside the floor that this machine sets for the same work in the same run."""
