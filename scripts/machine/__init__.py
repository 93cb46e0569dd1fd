"""What the scripts share to set up a machine and to run stores on it.

Standard library only: these modules run before the virtual environment exists.
"""
