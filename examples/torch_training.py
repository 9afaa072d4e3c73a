"""torch_training: a training loop in which the norm of all gradients has the same bits on one rank and on three.

    python3 torch_training.py [RANKS]...      1 and 3 by default; it needs the package cured, and torch 1.13 or later

Each rank has a slice of all parameters, of their gradients and of the optimizer's state, as FSDP and ZeRO do it. Where the slices end
depends on the number of ranks. A norm that each rank rounds for itself depends on that, too; cured.torch's does not.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing

import cured.torch

STEPS, MOST_NORM = 5, 0.5


def model_and_data():
    """The same on all ranks."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 33), torch.nn.Tanh(), torch.nn.Linear(33, 1))
    inputs = torch.randn(64, 8)
    return model, inputs, inputs.pow(2).sum(1, keepdim=True)


def train(rank, ranks, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    model, inputs, targets = model_and_data()
    whole = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    slices = list(whole.tensor_split(ranks))  # of the same memory
    own = torch.nn.Parameter(slices[rank].clone())
    optimizer = torch.optim.SGD([own], lr=0.05, momentum=0.9)
    for step in range(STEPS):
        torch.nn.utils.vector_to_parameters(whole, model.parameters())
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        own.grad = torch.cat([g.reshape(-1) for g in gradients]).tensor_split(ranks)[rank].clone()
        norm = cured.torch.clip_grad_norm_([own], MOST_NORM, group=dist.group.WORLD)
        optimizer.step()
        with torch.no_grad():
            slices[rank].copy_(own)
        for source, piece in enumerate(slices):
            dist.broadcast(piece, source)
        if rank == 0:
            print("ranks %d, step %d: loss %.4f, norm %s" % (ranks, step, loss.item(), norm.item().hex()), flush=True)
    for name, tensor in cured.torch.stats(model).items() if rank == 0 else ():
        print("ranks %d, %s: NaNs %d, norm %.6f" % (ranks, name, tensor.count_nan, tensor.norm2))
    dist.destroy_process_group()


def main():
    for ranks in map(int, sys.argv[1:] or ("1", "3")):
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(train, (ranks, os.path.join(folder, "store")), nprocs=ranks)


if __name__ == "__main__":
    main()
