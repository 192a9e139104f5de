"""TrainFlash makes other people's PyTorch training faster, and proves it.

The package itself loads nothing: import the module you need (`trainflash.workflow` has the verbs).
"""

__version__ = "0.1.0"
