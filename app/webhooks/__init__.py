"""Messages to others when a job ends, by the Standard Webhooks scheme."""
