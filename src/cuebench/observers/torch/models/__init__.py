"""Networks of the papers that are in no library, as small torch modules whose keys fit the published checkpoints.

Use them through ``checkpoint:FILE?arch=python:cuebench.observers.torch.models.bagnet:bagnet9`` or ``suite:``. These
files import torch: they are themselves imported only when such a network is built.
"""
