"""Updates of cells' code with edited arguments."""
