"""Stimuli: manifests, readers of folder layouts, drawing, rendering, verification, fetching and making."""
