"""What the two older APIs decide: ids, numbers, formats, catalogs, publications."""
