"""REFINED-BIAS data: checking the published files, and making such cues from anybody's images with object masks."""
