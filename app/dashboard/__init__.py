"""The dashboard: pages for people, on the same services as the api.

`pages` holds a module for each page; `rendering` makes HTML from templates (app/templates/dashboard), `assets` serves
styles and scripts, `visitors` knows who is signed in, and `shared` reads once what many browsers poll for.
docs/dashboard.md describes the dashboard from outside.
"""
