"""REFINED-BIAS data: checking the published files, and making such cues from images with object masks."""
