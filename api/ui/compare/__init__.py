"""The page `/ui/compare/`: two Versions, or one entity at two moments, by text, by meaning and by attributes.

What the meaning is and which attributes differ is the API's; only lines of text are compared here.
Begin with `compare_page.py`.
"""
