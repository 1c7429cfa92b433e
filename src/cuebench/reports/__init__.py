"""How results are shown: figures, tables and pages made from a run folder. Needs no model and no image."""
