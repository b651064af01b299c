"""The devices that laws run on: a CPU, and a GPU where there is one."""

import torch

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
