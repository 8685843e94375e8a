"""What tests of several folders, and bench/, share: stores, served registries, receivers, generated histories."""
