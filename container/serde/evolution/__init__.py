"""What becomes of a store's values under another schema: which are read, and how."""
