"""Private kernels of edge-enhancing diffusion: parameters, cycle planning, and one file for each backend."""
