"""The write path: clean, extract, embed, then one transaction; one module for each kind of write."""
