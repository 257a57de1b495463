"""What all routes share: who asks, what a request may carry, how an error is answered, and what an api process
works with."""
