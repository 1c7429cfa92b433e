"""published_agreement: do the papers rank models alike?

Rank correlations of all pairs of published measures over the models that they share, with intervals.
"""

from gallery.shared import picture_of

from cuebench.published.agree import agree
from cuebench.registry import figures

published_agreement = figures.get("published_agreement")
published_agreement(agree()).save(picture_of(__file__))
