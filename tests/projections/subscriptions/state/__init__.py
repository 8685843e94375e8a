"""What is stored of deliveries."""
