"""Lists that Python walks element by element: one operation for all of them."""
