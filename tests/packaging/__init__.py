"""The wheel, the source distribution, the image, and the files that a person expects next to the code."""
