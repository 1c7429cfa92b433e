"""Who looks: models, people and ideal observers behind one small contract (``base.Observer``)."""
