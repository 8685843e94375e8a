"""The wheel, the source distribution, and the files that users and contributors expect next to the code."""
