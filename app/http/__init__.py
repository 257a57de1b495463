"""The modules that all routes share: authentication, the limits of a request, the answers to errors, and the context
of an api process."""
