"""texturedness: texturedness

Draw the mean texturedness of all observers with 95 % intervals. Drawn from observers whose bias is known, on drawn
stimuli: it shows how the figure looks, and says nothing about models.
"""

from gallery.shared import greys, picture_of

from cuebench.reports.draw import draw

picture = draw("texturedness", greys())
picture.save(picture_of(__file__))
