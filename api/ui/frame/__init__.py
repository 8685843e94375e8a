"""What all pages have around their own part: navigation, the form "As of", breadcrumbs, banner and footer.

Begin with `frame.py`. The page itself does not belong here.
"""
