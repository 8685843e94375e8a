"""Opening a registry, alone and next to other processes, and the values that its headers carry."""
