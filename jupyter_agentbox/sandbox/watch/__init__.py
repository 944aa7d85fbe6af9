"""What runs beside a sandbox: processes that hold it to its limits, and end what it leaves behind."""
