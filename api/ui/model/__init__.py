"""Pages of the model and of the capabilities, which are edited as JSON (UI-57, UI-58, UI-120)."""
