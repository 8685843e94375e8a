"""Figures of the product, each compared with the floor that this machine sets for the same work in the same run."""
