"""Several rooms at once: served registries as processes, real sockets, brokers and browsers."""
