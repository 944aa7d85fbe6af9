"""What waits at the Hub service for the user whose server this is."""
