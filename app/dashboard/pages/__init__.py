"""Each module is a page of the dashboard: it has the page's routes, and the model that its template shows."""
