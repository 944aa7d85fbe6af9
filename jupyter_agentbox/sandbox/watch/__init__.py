"""What runs beside a sandbox: processes that enforce its limits and end what it leaves behind."""
