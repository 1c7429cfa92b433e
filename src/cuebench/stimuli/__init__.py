"""What is shown: manifests, readers of folder layouts, verification, fetching and making of stimuli."""
