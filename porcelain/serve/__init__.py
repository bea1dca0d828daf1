"""``objstore serve``: a store over HTTP, for other stores, pages and programs.

``tokens`` says who may, ``guard`` refuses everybody else, ``exchange`` and ``reading`` answer, ``description`` is what
they answer in OpenAPI, ``app`` puts it together, ``server`` runs it.
"""
