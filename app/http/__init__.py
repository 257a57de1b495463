"""What all routes share: who asks, what is taken, how an error is answered, and what one api process works with."""
