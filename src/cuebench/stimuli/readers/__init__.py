"""Folder layouts that can be read as a stimulus set, one file each."""
