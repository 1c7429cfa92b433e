"""Drawing shapes and textures: nothing is downloaded, and the same seed gives the same pixels.

==========================  ===========================================================================
``outlines``                closed outlines, how they lie in a picture, and the mask that they fill
``canvas``                  coordinates, noise, lattices and light that textures are drawn with
``fields``                  functions of fields of numbers: thresholds, waves, noise, hexagons
``colour``                  palettes, ramps and mixtures of colours
``novel_shapes``            closed shapes that have no name
``everyday_shapes``         silhouettes of everyday things
``textures``                procedural textures, one file for each family
``everyday_textures``       textures of everyday things
==========================  ===========================================================================

A change of any pixel needs a new ``VERSION`` in the catalogue that it belongs to: pictures of two versions must never
be mixed.
"""
