"""Making the sets of cue decomposition: originals, shape cues, texture cues, masks, cue-conflict candidates."""
