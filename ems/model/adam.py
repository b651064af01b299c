"""PyTorch's Adam, without PyTorch's compiler.

`torch.optim` imports the compiler (torch._dynamo) to say of its methods that they are not to be
compiled, when the first optimiser is made: 1.2 s of CPU and 70 MB for each training and each
benchmark that trains a classifier. Here the methods are what they are in PyTorch before they are
decorated with that; where a version of PyTorch no longer does so, `unwrap` changes nothing.
"""

import inspect

import torch


class Adam(torch.optim.Adam):
    """`torch.optim.Adam`, to be stepped outside of compiled code."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Adam.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))
