"""silhouette_procedures: shape bias of textured silhouettes, by two procedures.

Draw the shape bias by both procedures; the panel of triplets is left out where the run has none. Drawn from
observers whose bias is known, on drawn stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import picture_of, planted

from cuebench.reports.draw import draw

picture = draw("silhouette_procedures", planted("textured_silhouettes", "triplets"))
picture.save(picture_of(__file__))
