"""Shared by the scripts: setting up a machine, and running stores on it.

These modules import only the standard library, because they run before the virtual environment exists.
"""
