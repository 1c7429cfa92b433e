"""The papers' own tables as data, what follows from them, and where a new model stands among them."""
