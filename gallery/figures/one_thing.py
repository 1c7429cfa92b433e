"""one_thing: do the protocols measure one thing?

Correlations of the published headlines, corrected for error of measurement, and what each has of its own.
"""

from gallery.shared import picture_of

from cuebench.published.one_thing import published_structures
from cuebench.registry import figures

one_thing = figures.get("one_thing")
one_thing(published_structures()).save(picture_of(__file__))
