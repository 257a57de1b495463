"""`make demo`: the whole service on embedded servers, real jobs over HTTP, every answer checked."""
