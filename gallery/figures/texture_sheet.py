"""texture_sheet: contact sheet of procedural textures.

Draw every texture with its name.
"""

from gallery.shared import picture_of

from cuebench.reports.draw import draw

picture = draw("texture_sheet")
picture.save(picture_of(__file__))
