"""The code of cells whose calls a person edited."""
