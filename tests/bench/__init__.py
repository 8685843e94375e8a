"""Tests of the benchmarks: their workloads do what they measure."""
