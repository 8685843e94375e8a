"""Tests of several components together: registries as server processes, real sockets, brokers and browsers."""
