"""Storage of approval requests in an SQL database. Only this package imports SQLAlchemy."""
