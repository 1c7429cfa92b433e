"""Trained controls: small networks whose bias is known from what they were trained on.

Ideal observers know the truth and ignore pixels; real networks see pixels and nobody knows the truth. Controls are
between: they see pixels, and their training images were drawn so that only the shape, only the material, or both
predict the class. Used as ``control:shape`` and so on (``cuebench controls``).
"""
