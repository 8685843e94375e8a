"""The benchmarks: that their workloads do what they measure."""
