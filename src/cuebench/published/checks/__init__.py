"""One file for each kind of figure that can be derived; its function of the same name returns the findings."""
