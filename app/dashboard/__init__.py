"""The dashboard: pages for people, on the same services as the api.

`pages` holds a module a page; `rendering` makes HTML of templates (app/templates/dashboard), `assets` and `vega` serve
style and scripts, `visitors` knows who is signed in, `recent` shares what many poll for. docs/dashboard.md describes
it from outside.
"""
