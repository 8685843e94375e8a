"""Rules of the two legacy APIs: ids, numbers, formats, catalogs, publications."""
